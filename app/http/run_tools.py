"""Tool calls across runs, and the truth about one whose outcome was unknown."""

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import body_of, query_of, run_id_of
from app.http.display import cut_text
from app.http.events import name_run
from app.http.replies import reply
from app.http.run_bodies import ResolveBody, ToolsQuery
from app.http.services import services_of, tenant_of
from app.http.watching import creation_of
from domain.events import ContinuationBlock
from domain.ids import RunId
from projections.base import BrokenStream
from projections.read.tools import list_tool_calls
from projections.run_record import record_of
from projections.tool_calls import ToolCallRecord, tool_calls_of
from projections.values import storable


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """The call as it is on record now, and what became of its run by it."""

    run_id: RunId
    tool_call: ToolCallRecord
    continued_by_run_id: RunId | None
    continuation_blocked: ContinuationBlock | None
    """What else stands against the run being continued, if it was interrupted and is not."""


async def list_calls(request: web.Request) -> web.Response:
    """Newest first, from a view."""
    wanted, services = query_of(request, ToolsQuery), services_of(request)
    page = await list_tool_calls(
        services.pool, tenant_of(request), wanted.filter, skip=wanted.skip, take=wanted.take
    )
    limit = services.recording.display_limit
    shown = [displayed(call, limit) for call in page.tool_calls]
    return reply(msgspec.structs.replace(page, tool_calls=shown))


async def resolve_call(request: web.Request) -> web.Response:
    """Repeating it with the same body changes nothing."""
    query_of(request, NoQuery)
    run_id, tenant, services = name_run(request, run_id_of(request)), tenant_of(request), services_of(request)
    await creation_of(services.log, tenant, run_id)
    call_id, body = request.match_info["call"], await body_of(request, ResolveBody)
    await services.resolutions.resolve(tenant, run_id, body.command(call_id))
    history = await services.runs.load(tenant, run_id)
    record, calls = record_of(history), tool_calls_of(history)
    found = [call for call in calls if call.call_id == storable(call_id)]
    if record is None or not found:
        raise BrokenStream(f"run {run_id} lost tool call {call_id!r}")
    return reply(
        Resolution(
            run_id=run_id,
            tool_call=displayed(found[-1], services.recording.display_limit),
            continued_by_run_id=record.continued_by_run_id,
            continuation_blocked=record.continuation_blocked,
        )
    )


def displayed(call: ToolCallRecord, limit: int) -> ToolCallRecord:
    """With long texts cut (EVENT-7); the run's stream has them whole."""
    output = None if call.output is None else cut_text(call.output, limit)
    return msgspec.structs.replace(call, arguments=cut_text(call.arguments, limit), output=output)
