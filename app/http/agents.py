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
from app.http.queued import accepted, prefers_async, queued
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from app.supervision.run_service import StartRequest
from domain.agent import AgentDefinition
from domain.events import Recorded, RunEvent


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
    query_of(request, NoQuery)
    return reply(AgentList(agents=services_of(request).catalog.agents()))


async def get_agent(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    return reply(services_of(request).catalog.agent(request.match_info["name"]))


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
