"""Defining workflows over HTTP, and their versions."""

from asyncio import shield

import msgspec
from aiohttp import web

from app.http.bodies import ListQuery, NoQuery
from app.http.decoding import body_of, query_of
from app.http.definitions import body_for, name_in, newest_first, reply_with
from app.http.preconditions import expected_by
from app.http.replies import reply
from app.http.services import key_of, services_of, tenant_of
from domain.workflow.definition import WorkflowDefinition
from projections.read.window import Window
from projections.version_record import WorkflowVersionRecord, workflow_version_of

WorkflowBody = body_for("WorkflowBody", WorkflowDefinition)
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
    body, name = await body_of(request, WorkflowBody), name_in(request, "a workflow's")
    services = services_of(request)
    definition = WorkflowDefinition(
        name=name, **{field: getattr(body, field) for field in body.__struct_fields__}
    )
    definitions, expected = services.workflows.definitions, expected_by(request)
    defining = definitions.define(tenant_of(request), definition, expected, key_of(request))
    defined = await shield(defining)
    location = {"Location": f"{services.server.prefix}/api/workflows/{name}"} if defined.is_new else {}
    return reply_with(workflow_version_of(defined.recorded), 201 if defined.is_new else 200, location)


async def remove_workflow(request: web.Request) -> web.Response:
    """Runs of it, and those that go on from them, keep the definition that they began with."""
    query_of(request, NoQuery)
    name, definitions = request.match_info["name"], services_of(request).workflows.definitions
    removing = definitions.remove(tenant_of(request), name, expected_by(request), key_of(request))
    return reply_with(workflow_version_of((await shield(removing)).recorded), 200, {})


async def list_workflow_versions(request: web.Request) -> web.Response:
    """From the workflow's own stream, so that it is never behind."""
    wanted = query_of(request, ListQuery)
    window = Window.clamped(wanted.skip, wanted.take)
    definitions, name = services_of(request).workflows.definitions, request.match_info["name"]
    history = await definitions.history(tenant_of(request), name)
    part, more = newest_first(history, workflow_version_of, window)
    return reply(WorkflowVersionsPage(versions=part, skip=window.skip, take=window.take, more=more))
