"""Running again what a run was given, and putting two runs side by side."""

from asyncio import shield

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import optional_body_of, query_of, run_id_of
from app.http.display import cut_text
from app.http.errors import ScopeMissing
from app.http.events import name_run
from app.http.replies import reply
from app.http.request_keys import PRINCIPAL
from app.http.run_bodies import ReplayBody
from app.http.services import services_of, tenant_of
from app.http.watching import creation_of
from app.keys.key import Scope
from domain.replay import ReplayTools
from projections.comparison import CallPair, CallSide, Comparison, Side, compare
from projections.run_record import record_of


async def replay_run(request: web.Request) -> web.Response:
    """Answers with the new run as it begins; its events are watched like any other's."""
    query_of(request, NoQuery)
    run_id, tenant, services = run_id_of(request), tenant_of(request), services_of(request)
    await creation_of(services.log, tenant, run_id)
    body = await optional_body_of(request, ReplayBody)
    scopes = request[PRINCIPAL].scopes
    if body.tools is ReplayTools.LIVE and Scope.ADMIN not in scopes:
        raise ScopeMissing(str(Scope.ADMIN), scopes)
    new = await shield(services.replays.start(body.request(tenant, run_id)))
    location = f"{services.server.prefix}/api/runs/{name_run(request, new)}"
    record = record_of(await services.runs.load(tenant, new))
    return reply(record, status=201, headers={"Location": location})


async def compare_runs(request: web.Request) -> web.Response:
    """As both are now; neither has to be over, and they need not be replays of each other."""
    query_of(request, NoQuery)
    runs, tenant = services_of(request).runs, tenant_of(request)
    a = await runs.load(tenant, name_run(request, run_id_of(request)))
    b = await runs.load(tenant, run_id_of(request, "other"))
    return reply(_displayed(compare(a, b), services_of(request).recording.display_limit))


def _displayed(found: Comparison, limit: int) -> Comparison:
    """With long texts cut (EVENT-7)."""

    def cut(text: str | None) -> str | None:
        return None if text is None else cut_text(text, limit)

    def side(one: Side) -> Side:
        return msgspec.structs.replace(one, answer=cut(one.answer))

    def call(one: CallSide | None) -> CallSide | None:
        return None if one is None else msgspec.structs.replace(one, output=cut(one.output))

    def pair(one: CallPair) -> CallPair:
        arguments = cut_text(one.arguments, limit)
        return msgspec.structs.replace(one, arguments=arguments, a=call(one.a), b=call(one.b))

    diff = found.answer_diff
    return msgspec.structs.replace(
        found,
        a=side(found.a),
        b=side(found.b),
        answer_diff=None if diff is None else tuple(cut_text(line, limit) for line in diff),
        tool_calls=tuple(map(pair, found.tool_calls)),
    )
