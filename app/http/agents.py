"""Agents: which there are, and running one."""

from asyncio import shield

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery, StartRunBody
from app.http.decoding import body_of, query_of
from app.http.errors import NotWired
from app.http.events import name_run, stream_run
from app.http.in_flight import IN_FLIGHT
from app.http.negotiation import EVENT_STREAM, JSON, choose
from app.http.outcomes import end_of, respond
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from domain.agent import AgentDefinition


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    agents: tuple[AgentDefinition, ...]


async def start_run(request: web.Request) -> web.StreamResponse:
    """Whoever hangs up while the run is being opened does not leave it half open, hence the shield."""
    services_of(request).drain.admit()
    media = _answer_in(request)
    body = await body_of(request, StartRunBody)
    submission = body.request(tenant_of(request), request.match_info["name"], streaming=media == EVENT_STREAM)
    run_id = await shield(services_of(request).runs.start(submission))
    if media == EVENT_STREAM:
        return await stream_run(request, run_id)
    name_run(request, run_id)
    async with request.app[IN_FLIGHT].until_stop():
        ended = await end_of(services_of(request).log, run_id)
    return respond(ended, request)


async def list_agents(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    return reply(AgentList(agents=services_of(request).catalog.agents()))


async def get_agent(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    return reply(services_of(request).catalog.agent(request.match_info["name"]))


def _answer_in(request: web.Request) -> str:
    query_of(request, NoQuery)
    if "Idempotency-Key" in request.headers:
        raise NotWired("Idempotency-Key is not supported here; without it the request may run twice.")
    return choose(request.headers.get("Accept"), (EVENT_STREAM, JSON))
