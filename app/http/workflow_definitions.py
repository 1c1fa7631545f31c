"""Defining workflows over HTTP, and their versions."""

import re
from asyncio import shield
from typing import Any

import msgspec
from aiohttp import web

from app.http.bodies import Body, ListQuery, NoQuery
from app.http.decoding import body_of, query_of
from app.http.errors import BadBody, FieldError
from app.http.preconditions import etag_of, expected_by
from app.http.replies import reply
from app.http.request_keys import PRINCIPAL
from app.http.services import services_of, tenant_of
from app.workflows.definitions import DefinedWorkflow
from domain.agent import NAME_PATTERN
from domain.workflow_definition import WorkflowDefinition
from projections.base import BrokenStream
from projections.read.window import Window
from projections.workflow_record import WorkflowVersionRecord, version_of

WorkflowBody: Any = msgspec.defstruct(
    "WorkflowBody",
    [
        (field.name, field.type) if field.required else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(WorkflowDefinition)
        if field.name != "name"
    ],
    bases=(Body,),
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""A workflow as the settings define one: always all of it."""


class WorkflowVersionsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a workflow's versions, newest first."""

    versions: list[WorkflowVersionRecord]
    skip: int
    take: int
    more: bool
    """Whether the list goes on after this part."""


async def define_workflow(request: web.Request) -> web.Response:
    """201 for a workflow that was not there. The same definition again is no new version."""
    query_of(request, NoQuery)
    body, name = await body_of(request, WorkflowBody), _name_of(request)
    services = services_of(request)
    definition = WorkflowDefinition(
        name=name, **{field: getattr(body, field) for field in body.__struct_fields__}
    )
    definitions, expected = services.workflows.definitions, expected_by(request)
    defining = definitions.define(tenant_of(request), definition, expected, _key_of(request))
    defined = await shield(defining)
    location = {"Location": f"{services.server.prefix}/api/workflows/{name}"} if defined.is_new else {}
    return _reply(defined, 201 if defined.is_new else 200, location)


async def remove_workflow(request: web.Request) -> web.Response:
    """Runs of it, and those that go on from them, keep the definition that they began with."""
    query_of(request, NoQuery)
    name, definitions = request.match_info["name"], services_of(request).workflows.definitions
    removing = definitions.remove(tenant_of(request), name, expected_by(request), _key_of(request))
    return _reply(await shield(removing), 200, {})


async def list_workflow_versions(request: web.Request) -> web.Response:
    """From the workflow's own stream, so that it is never behind."""
    wanted = query_of(request, ListQuery)
    window = Window.clamped(wanted.skip, wanted.take)
    definitions, name = services_of(request).workflows.definitions, request.match_info["name"]
    history = await definitions.history(tenant_of(request), name)
    newest_first = [version for recorded in reversed(history) if (version := version_of(recorded))]
    part = newest_first[window.skip : window.skip + window.take]
    more = len(newest_first) > window.skip + window.take
    return reply(WorkflowVersionsPage(versions=part, skip=window.skip, take=window.take, more=more))


def _reply(defined: DefinedWorkflow, status: int, headers: dict[str, str]) -> web.Response:
    version = version_of(defined.recorded)
    if version is None:
        raise BrokenStream("a workflow's stream has something else in it")
    return reply(version, status=status, headers={"ETag": etag_of(version.version), **headers})


def _name_of(request: web.Request) -> str:
    """Raise BadBody for what cannot be the name of a workflow."""
    name = request.match_info["name"]
    if not re.match(NAME_PATTERN, name):
        told = "a workflow's name has letters, digits, dots, hyphens and underscores"
        raise BadBody(f"name: {told}", FieldError(field="name", message=told))
    return name


def _key_of(request: web.Request) -> str | None:
    key_id = request[PRINCIPAL].key_id
    return None if key_id is None else str(key_id)
