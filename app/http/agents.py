"""Agents: which there are, and running one."""

from asyncio import shield
from collections.abc import Sequence
from functools import partial

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery, StartRunBody
from app.http.decoding import body_of, query_of
from app.http.events import stream_run
from app.http.idempotency import is_keyed, once
from app.http.in_flight import IN_FLIGHT
from app.http.negotiation import EVENT_STREAM, JSON, choose
from app.http.outcomes import RUN, end_of, ended_as, respond
from app.http.own_run import own_run
from app.http.preconditions import etag_of
from app.http.queued import accepted, prefers_async, queued
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from app.registry import AgentNotFound
from app.supervision.run_service import StartRequest
from domain.agent import AgentDefinition
from domain.events import Recorded, RunEvent
from projections.read.agents import defined_agents


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    agents: tuple[AgentDefinition, ...]


async def start_run(request: web.Request) -> web.StreamResponse:
    query_of(request, NoQuery)
    if prefers_async(request):
        return await _queue_run(request)
    if is_keyed(request):
        return await once(request, RUN, partial(_submission, request, streaming=False), refuse=_refuse)
    services_of(request).drain.admit()
    media = choose(request.headers.get("Accept"), (EVENT_STREAM, JSON))
    submission = await _submission(request, streaming=media == EVENT_STREAM)
    async with own_run(request, services_of(request).runs.start(submission)) as run_id:
        if media == EVENT_STREAM:
            return await stream_run(request, run_id)
        async with request.app[IN_FLIGHT].until_stop():
            ended = await end_of(services_of(request).log, run_id)
        return respond(ended, request)


async def list_agents(request: web.Request) -> web.Response:
    """Those of code and settings, and those that the tenant has defined, by name."""
    query_of(request, NoQuery)
    return reply(AgentList(agents=await agents_of(request)))


async def get_agent(request: web.Request) -> web.Response:
    """With the ETag of its version, where it is the tenant's own."""
    query_of(request, NoQuery)
    services, tenant, name = services_of(request), tenant_of(request), request.match_info["name"]
    if services.catalog.has(name):
        return reply(services.catalog.agent(name))
    now = await services.agents.version(tenant, name)
    if now.definition is None:
        raise AgentNotFound(name)
    return reply(now.definition, headers={"ETag": etag_of(now.version)})


async def agents_of(request: web.Request) -> tuple[AgentDefinition, ...]:
    """Everything that the tenant can run, by name. One of code or settings stands above its own."""
    catalog = services_of(request).catalog
    own = await defined_agents(services_of(request).pool, tenant_of(request))
    agents = (*catalog.agents(), *(agent for agent in own if not catalog.has(agent.name)))
    return tuple(sorted(agents, key=lambda agent: agent.name))


async def _queue_run(request: web.Request) -> web.Response:
    services = services_of(request)
    if is_keyed(request):
        return await once(request, accepted(services.server.prefix), partial(_queued, request))
    services.drain.admit()
    return queued(request, await shield(services.runs.submit(await _queued(request))))


async def _queued(request: web.Request) -> StartRequest:
    body, settings = await body_of(request, StartRunBody), services_of(request).async_run
    return body.queued(tenant_of(request), request.match_info["name"], settings)


async def _submission(request: web.Request, *, streaming: bool) -> StartRequest:
    body = await body_of(request, StartRunBody)
    return body.request(tenant_of(request), request.match_info["name"], streaming=streaming)


def _refuse(request: web.Request, events: Sequence[Recorded[RunEvent]]) -> web.Response:
    return respond(ended_as(events), request)
