"""A run's events, from any place on, as JSON or as a stream (HTTP-3, EVENT-1)."""

from contextlib import aclosing

from aiohttp import web
from msgspec import UNSET

from app.http.bodies import EventsQuery
from app.http.decoding import query_of, run_id_of, sequence_of
from app.http.event_list import answer_with_events
from app.http.negotiation import EVENT_STREAM, JSON, choose
from app.http.request_keys import RUN_ID, STREAMING
from app.http.services import STREAMS, services_of, tenant_of
from app.http.sse import EventStream, frames, last_number
from app.http.watching import creation_of, ended_by, until_end
from domain.ids import RunId
from projections.read.window import Window


async def list_events(request: web.Request) -> web.StreamResponse:
    """Finished and live runs alike, on any host."""
    query, run_id = query_of(request, EventsQuery), name_run(request, run_id_of(request))
    after = _place(request, query)
    await creation_of(services_of(request).log, tenant_of(request), run_id)
    over = await ended_by(services_of(request).log, run_id, after)
    if request.method == "HEAD" or choose(request.headers.get("Accept"), (EVENT_STREAM, JSON)) == JSON:
        take = None if query.take is UNSET else Window.clamped(0, query.take).take
        return await answer_with_events(request, run_id, after, take)
    # 204 is how a server tells an event source that there is nothing to reconnect for.
    return web.Response(status=204) if over else await stream_run(request, run_id, after)


async def stream_run(request: web.Request, run_id: RunId, after: int = 0) -> web.StreamResponse:
    """Everything after event `after`, up to the run's end. The run does not mind whether anybody watches."""
    services, request[STREAMING] = services_of(request), True
    location = f"{services.server.prefix}/api/runs/{name_run(request, run_id)}"
    async with (
        request.app[STREAMS].open(EventStream(request, {"Location": location})) as stream,
        aclosing(until_end(services.log, run_id, after)) as batches,
    ):
        async for batch in batches:
            stream.position = last_number(batch, stream.position)
            for piece in frames(run_id, batch, services.recording.display_limit):
                await stream.send(piece)
    return stream


def name_run(request: web.Request, run_id: RunId) -> RunId:
    """Have every answer to this request, problems too, carry the run's id."""
    request[RUN_ID] = str(run_id)
    return run_id


def _place(request: web.Request, query: EventsQuery) -> int:
    if last := request.headers.get("Last-Event-ID"):
        return sequence_of("Last-Event-ID", last)
    return 0 if query.after is UNSET else sequence_of("after", query.after)
