"""Runs that are left to a worker: Prefer: respond-async, and what is answered then (JOB-1)."""

from collections.abc import Sequence

from aiohttp import web

from app.http.display import encode
from app.http.events import name_run
from app.http.negotiation import JSON
from app.http.services import services_of
from app.idempotency.answer import Answer, Form
from domain.events import Event, Recorded
from domain.ids import RunId, run_stream
from projections.base import BrokenStream
from projections.run_record import record_of

ASYNC = "respond-async"


def prefers_async(request: web.Request) -> bool:
    """Whether the client would rather not wait (RFC 7240)."""
    preferences = (
        preference.partition(";")[0].strip().lower()
        for header in request.headers.getall("Prefer", ())
        for preference in header.split(",")
    )
    return ASYNC in preferences


def accepted(prefix: str) -> Form:
    """The answer to such a submission. The prefix is that of the service's paths."""

    def render(recorded: Sequence[Recorded[Event]]) -> Answer:
        """Of the run as it was when it was recorded, whatever it has come to since."""
        record = record_of(recorded[:1])
        if record is None:
            raise BrokenStream("a queued run has no beginning")
        headers = {"Location": f"{prefix}/api/runs/{record.id}", "Preference-Applied": ASYNC}
        return Answer(status=202, content_type=JSON, body=encode(record), headers=headers)

    return Form(name="run.accepted", render=render, at_once=True)


async def queued_before(request: web.Request, run_id: RunId) -> web.Response:
    """The answer to whoever has a run queued, now or before, in a way of its own."""
    [created] = await services_of(request).log.read_stream(run_stream(run_id), limit=1)
    return queued(request, created, preferred=False)


def queued(request: web.Request, created: Recorded[Event], *, preferred: bool = True) -> web.Response:
    """The answer to whoever had this run queued; `preferred`: because it asked not to wait."""
    name_run(request, RunId(created.stream_id))
    answer = accepted(services_of(request).server.prefix).render([created])  # type: ignore[list-item]
    headers = {name: value for name, value in answer.headers.items() if preferred or name == "Location"}
    return web.Response(
        body=answer.body,
        status=answer.status,
        content_type=answer.content_type,
        headers={"Cache-Control": "no-store", **headers},
    )
