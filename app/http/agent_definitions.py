"""Defining agents over HTTP, and their versions."""

import re
from asyncio import shield
from typing import Any

import msgspec
from aiohttp import web

from app.definitions.versions import Defined
from app.http.bodies import Body, ListQuery, NoQuery
from app.http.decoding import body_of, query_of
from app.http.errors import BadBody, FieldError
from app.http.preconditions import etag_of, expected_by
from app.http.replies import reply
from app.http.request_keys import PRINCIPAL
from app.http.services import services_of, tenant_of
from domain.agent import NAME_PATTERN, AgentDefinition
from projections.agent_record import AgentVersionRecord, version_of
from projections.base import BrokenStream
from projections.read.window import Window


def _fields() -> list[Any]:
    """Those of a definition, but for the name, which is in the path."""
    return [
        (field.name, field.type, _default(field)) if not field.required else (field.name, field.type)
        for field in msgspec.structs.fields(AgentDefinition)
        if field.name != "name"
    ]


def _default(field: Any) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return field.default


AgentBody: Any = msgspec.defstruct(
    "AgentBody", _fields(), bases=(Body,), frozen=True, kw_only=True, forbid_unknown_fields=True
)
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
    body, name = await body_of(request, AgentBody), _name_of(request)
    services = services_of(request)
    definition = AgentDefinition(
        name=name, **{field: getattr(body, field) for field in body.__struct_fields__}
    )
    defined = await shield(
        services.agent_versions.define(tenant_of(request), definition, expected_by(request), _key_of(request))
    )
    location = {"Location": f"{services.server.prefix}/api/agents/{name}"} if defined.is_new else {}
    return _reply(defined, 201 if defined.is_new else 200, location)


async def remove_agent(request: web.Request) -> web.Response:
    """Runs of it go on with the definition that they began with; its versions stay."""
    query_of(request, NoQuery)
    name, versions = request.match_info["name"], services_of(request).agent_versions
    removing = versions.remove(tenant_of(request), name, expected_by(request), _key_of(request))
    return _reply(await shield(removing), 200, {})


async def list_versions(request: web.Request) -> web.Response:
    """From the agent's own stream, so that it is never behind."""
    wanted = query_of(request, ListQuery)
    window = Window.clamped(wanted.skip, wanted.take)
    versions, name = services_of(request).agent_versions, request.match_info["name"]
    history = await versions.history(tenant_of(request), name)
    newest_first = [version for recorded in reversed(history) if (version := version_of(recorded))]
    part = newest_first[window.skip : window.skip + window.take]
    more = len(newest_first) > window.skip + window.take
    return reply(VersionsPage(versions=part, skip=window.skip, take=window.take, more=more))


def _reply(defined: Defined, status: int, headers: dict[str, str]) -> web.Response:
    version = version_of(defined.recorded)
    if version is None:
        raise BrokenStream("an agent's stream has something else in it")
    return reply(version, status=status, headers={"ETag": etag_of(version.version), **headers})


def _name_of(request: web.Request) -> str:
    """Raise BadBody for what cannot be the name of an agent."""
    name = request.match_info["name"]
    if not re.match(NAME_PATTERN, name):
        told = "an agent's name has letters, digits, dots, hyphens and underscores"
        raise BadBody(f"name: {told}", FieldError(field="name", message=told))
    return name


def _key_of(request: web.Request) -> str | None:
    key_id = request[PRINCIPAL].key_id
    return None if key_id is None else str(key_id)
