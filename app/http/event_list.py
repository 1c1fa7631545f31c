"""A run's events as one JSON answer, made page by page: a giant run is never in memory as a whole."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

import msgspec
from aiohttp import ClientConnectionResetError, web

from app.http.display import EventView, encode, view_of
from app.http.in_flight import IN_FLIGHT
from app.http.negotiation import JSON
from app.http.services import Services, services_of
from app.http.sse import STALLED_S
from app.store.event_log import EventLog
from domain.errors import Unavailable
from domain.events import Event, Recorded
from domain.ids import RunId, run_stream

_PAGE = 200


class EventList(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one run, oldest first. With the last one's sequence as `after`, one asks for what follows."""

    run_id: RunId
    events: tuple[EventView, ...]


async def answer_with_events(
    request: web.Request, run_id: RunId, after: int, take: int | None
) -> web.StreamResponse:
    """An EventList of all that there are after event `after`, or of the first `take` of them."""
    services = services_of(request)
    async with aclosing(_pages(services.log, run_id, after, take)) as pages:
        first, second = await anext(pages, None), await anext(pages, None)
        head = b'{"run_id":%b,"events":[%b' % (encode(run_id), _shown(first or (), services))
        if second is None:
            return web.Response(body=head + b"]}", content_type=JSON, headers={"Cache-Control": "no-store"})
        return await _in_pieces(request, head, second, pages)


async def _in_pieces(
    request: web.Request,
    head: bytes,
    second: Sequence[Recorded[Event]],
    pages: AsyncIterator[Sequence[Recorded[Event]]],
) -> web.StreamResponse:
    """Whoever is to wait for the rest in vain is hung up on: what was sent so far is no JSON."""
    services, answer = services_of(request), web.StreamResponse(headers={"Cache-Control": "no-store"})
    answer.content_type = JSON
    try:
        async with request.app[IN_FLIGHT].until_stop():
            await answer.prepare(request)
            await _send(answer, head)
            await _send(answer, b"," + _shown(second, services))
            async for page in pages:
                await _send(answer, b"," + _shown(page, services))
            await _send(answer, b"]}")
    except (Unavailable, TimeoutError) as error:
        if request.transport is not None:
            request.transport.abort()
        raise ClientConnectionResetError("the rest of the events cannot be had") from error
    return answer


async def _send(answer: web.StreamResponse, piece: bytes) -> None:
    async with asyncio.timeout(STALLED_S):
        await answer.write(piece)


async def _pages(
    log: EventLog, run_id: RunId, after: int, take: int | None
) -> AsyncGenerator[Sequence[Recorded[Event]], None]:
    """None of them is empty."""
    left = take
    while left is None or left > 0:
        page = await log.read_stream_page(
            run_stream(run_id), after, _PAGE if left is None else min(_PAGE, left)
        )
        if page.events:
            yield page.events
            after = page.events[-1].sequence
            left = None if left is None else left - len(page.events)
        if not page.pending:
            return


def _shown(page: Sequence[Recorded[Event]], services: Services) -> bytes:
    limit = services.recording.display_limit
    return b",".join(encode(view_of(recorded, limit)) for recorded in page)
