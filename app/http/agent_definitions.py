"""Defining agents over HTTP, and their versions."""

from asyncio import shield

import msgspec
from aiohttp import web

from app.http.bodies import ListQuery, NoQuery
from app.http.decoding import body_of, query_of
from app.http.definitions import body_for, name_in, newest_first, reply_with
from app.http.preconditions import expected_by
from app.http.replies import reply
from app.http.services import key_of, services_of, tenant_of
from domain.agent import AgentDefinition
from projections.read.window import Window
from projections.version_record import AgentVersionRecord, agent_version_of

AgentBody = body_for("AgentBody", AgentDefinition)
"""An agent as the settings define one: always all of it."""


class VersionsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an agent's versions, newest first."""

    versions: list[AgentVersionRecord]
    skip: int
    take: int
    more: bool
    """Whether the list goes on after this part."""


async def define_agent(request: web.Request) -> web.Response:
    """201 for an agent that was not there. The same definition again is no new version."""
    query_of(request, NoQuery)
    body, name = await body_of(request, AgentBody), name_in(request, "an agent's")
    services = services_of(request)
    definition = AgentDefinition(
        name=name, **{field: getattr(body, field) for field in body.__struct_fields__}
    )
    defined = await shield(
        services.agent_versions.define(tenant_of(request), definition, expected_by(request), key_of(request))
    )
    location = {"Location": f"{services.server.prefix}/api/agents/{name}"} if defined.is_new else {}
    return reply_with(agent_version_of(defined.recorded), 201 if defined.is_new else 200, location)


async def remove_agent(request: web.Request) -> web.Response:
    """Runs of it go on with the definition that they began with; its versions stay."""
    query_of(request, NoQuery)
    name, versions = request.match_info["name"], services_of(request).agent_versions
    removing = versions.remove(tenant_of(request), name, expected_by(request), key_of(request))
    return reply_with(agent_version_of((await shield(removing)).recorded), 200, {})


async def list_versions(request: web.Request) -> web.Response:
    """From the agent's own stream, so that it is never behind."""
    wanted = query_of(request, ListQuery)
    window = Window.clamped(wanted.skip, wanted.take)
    versions, name = services_of(request).agent_versions, request.match_info["name"]
    history = await versions.history(tenant_of(request), name)
    part, more = newest_first(history, agent_version_of, window)
    return reply(VersionsPage(versions=part, skip=window.skip, take=window.take, more=more))
