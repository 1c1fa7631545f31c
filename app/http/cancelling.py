"""Cancelling a run, and what the cancel came upon."""

import asyncio
from contextlib import aclosing, suppress
from datetime import datetime
from typing import cast

import msgspec
from aiohttp import web

from app.http.bodies import CancelBody, CancelQuery
from app.http.decoding import optional_body_of, query_of, run_id_of
from app.http.events import name_run
from app.http.in_flight import IN_FLIGHT
from app.http.replies import reply
from app.http.services import key_of, services_of, tenant_of
from app.http.watching import until_end
from app.store.event_log import EventLog
from domain.agent import Link
from domain.errors import Unavailable
from domain.events import AfterEnd, Recorded, RunCancelled, RunEnd, StoppedCall
from domain.ids import RunId, run_stream
from domain.run import RunStatus, status_after


class CancelAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """The request has reached the run's owner. The run has stopped when its stream says so."""

    run_id: RunId


class CancelReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The run has ended, and this is what the cancel came upon (CANCEL-3).

    `model_call`: the call that was given up, its connection closed. `interrupted` tool calls were stopped,
    `unknown` ones were not and may have had their effect. `descendants`: runs below that ended with it. A run
    that was quicker ended by itself: its `status` says so, and there is nothing else to tell.
    """

    run_id: RunId
    status: RunStatus
    sequence: int
    """Of the event that ended it."""
    at: datetime
    reason: str = ""
    model_call: Link | None = None
    interrupted: tuple[StoppedCall, ...] = ()
    unknown: tuple[StoppedCall, ...] = ()
    descendants: int = 0


async def cancel_run(request: web.Request) -> web.Response:
    """202 says that the owner was told, not that the run has stopped (CANCEL-1)."""
    wanted, services = query_of(request, CancelQuery), services_of(request)
    run_id = name_run(request, run_id_of(request))
    body = await optional_body_of(request, CancelBody)
    await services.runs.cancel(tenant_of(request), run_id, body.reason, by=key_of(request))
    if wanted.wait and (end := await _end_in_time(request, run_id)):
        return reply(_receipt(run_id, end))
    return reply(CancelAccepted(run_id=run_id), status=202)


async def _end_in_time(request: web.Request, run_id: RunId) -> Recorded[RunEnd] | None:
    """The run's end; None if it does not come in time or cannot be waited for. It is accepted anyway."""
    services = services_of(request)
    with suppress(TimeoutError, Unavailable):
        async with (
            asyncio.timeout(services.cancellation.wait_timeout),
            request.app[IN_FLIGHT].until_stop(),
        ):
            return await _end_of(services.log, run_id)
    return None


async def _end_of(log: EventLog, run_id: RunId) -> Recorded[RunEnd] | None:
    last = await log.read_last(run_stream(run_id))
    # What was said after its end follows it there: of a run that waited for a person, that it waits no more.
    seen = 0 if last is None or isinstance(last.event, AfterEnd) else last.sequence - 1
    async with aclosing(until_end(log, run_id, seen)) as batches:
        async for batch in batches:
            for frame in batch:
                if isinstance(frame, Recorded) and isinstance(frame.event, RunEnd):
                    return cast(Recorded[RunEnd], frame)
    return None


def _receipt(run_id: RunId, end: Recorded[RunEnd]) -> CancelReceipt:
    match end.event:
        case RunCancelled() as cancelled:
            told = msgspec.structs.asdict(cancelled)
        case _:
            told = {}
    status = status_after(end.event)
    return CancelReceipt(run_id=run_id, status=status, sequence=end.sequence, at=end.at, **told)
