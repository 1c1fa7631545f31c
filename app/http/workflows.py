"""Workflows: which there are, running one, and having a run go on from another."""

from asyncio import shield
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import body_of, optional_body_of, query_of, run_id_of
from app.http.errors import BadIdempotencyKey
from app.http.events import name_run, stream_run
from app.http.idempotency import is_keyed, once
from app.http.in_flight import IN_FLIGHT
from app.http.negotiation import EVENT_STREAM, JSON, choose
from app.http.outcomes import end_of, respond
from app.http.own_run import own_run
from app.http.preconditions import etag_of
from app.http.queued import accepted, prefers_async, queued
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from app.http.workflow_bodies import GraphQuery, MayQueue, RespondBody, ResumeBody, RunWorkflowBody
from app.supervision.run_service import StartRequest
from app.workflows.definitions import Found
from app.workflows.service import GoOn
from domain.events import Event, InputRequest, Recorded
from domain.ids import RunId
from domain.workflow.definition import WorkflowDefinition
from domain.workflow.graph import graph_of, mermaid_of
from domain.workflow.state import Checkpoint

Submission = Callable[[bool], Awaitable[StartRequest]]
"""Makes the submission; True: it is to be watched. Raises what is wrong with the request."""

Submit = Callable[[StartRequest], Awaitable[Recorded[Event]]]

MERMAID = "text/vnd.mermaid"


class WorkflowView(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow as it is defined now."""

    name: str
    version: int
    """Of one that was saved over HTTP; 0: it is defined in code or settings, and cannot be changed here."""
    definition: WorkflowDefinition


class WorkflowList(msgspec.Struct, frozen=True, kw_only=True):
    workflows: tuple[WorkflowView, ...]


class CheckpointList(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run can be resumed from, the oldest first; those of the runs that it goes on from too."""

    run_id: RunId
    checkpoints: tuple[Checkpoint, ...]


class RequestList(msgspec.Struct, frozen=True, kw_only=True):
    """What a run asks people and nobody has answered."""

    run_id: RunId
    requests: tuple[InputRequest, ...]


async def list_workflows(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    found = await services_of(request).workflows.definitions.listed(tenant_of(request))
    return reply(WorkflowList(workflows=tuple(map(view_of, found))))


async def get_workflow(request: web.Request) -> web.Response:
    """With the ETag of its version, where it is the tenant's own."""
    query_of(request, NoQuery)
    found = await _found(request)
    return reply(view_of(found), headers={"ETag": etag_of(found.version)} if found.version else None)


async def get_graph(request: web.Request) -> web.Response:
    """As JSON or as Mermaid text, by `format` or the Accept header."""
    query = query_of(request, GraphQuery)
    graph = graph_of((await _found(request)).definition)
    media = choose(request.headers.get("Accept"), (JSON, MERMAID)) if not query.format else None
    if query.format == "mermaid" or media == MERMAID:
        return web.Response(text=mermaid_of(graph), content_type=MERMAID)
    return reply(graph)


async def run_workflow(request: web.Request) -> web.StreamResponse:
    query_of(request, NoQuery)
    return await _opened(request, partial(_submission, request), services_of(request).workflows.submit)


async def resume_run(request: web.Request) -> web.StreamResponse:
    query_of(request, NoQuery)
    run_id = run_id_of(request)

    async def submit(start: StartRequest) -> Recorded[Event]:
        body = await optional_body_of(request, ResumeBody)
        return await services_of(request).workflows.resume(_going_on(run_id, start), body.checkpoint or None)

    return await _opened(request, partial(_after, request, ResumeBody), submit)


async def respond_to_run(request: web.Request) -> web.StreamResponse:
    query_of(request, NoQuery)
    run_id = run_id_of(request)

    async def submit(start: StartRequest) -> Recorded[Event]:
        body, service = await body_of(request, RespondBody), services_of(request).workflows
        return await service.respond(_going_on(run_id, start), body.request_id or None, body.answer)

    return await _opened(request, partial(_after, request, RespondBody), submit)


async def list_checkpoints(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    run_id = name_run(request, run_id_of(request))
    found = await services_of(request).workflows.checkpoints(tenant_of(request), run_id)
    return reply(CheckpointList(run_id=run_id, checkpoints=found))


async def list_requests(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    run_id = name_run(request, run_id_of(request))
    found = await services_of(request).workflows.requests(tenant_of(request), run_id)
    return reply(RequestList(run_id=run_id, requests=found))


def view_of(found: Found) -> WorkflowView:
    return WorkflowView(name=found.definition.name, version=found.version, definition=found.definition)


async def _found(request: web.Request) -> Found:
    name = request.match_info["name"]
    return await services_of(request).workflows.definitions.find(tenant_of(request), name)


async def _opened(request: web.Request, submission: Submission, submit: Submit) -> web.StreamResponse:
    """Whoever hangs up while the run is being opened does not leave it half open."""
    services = services_of(request)
    if is_keyed(request):
        return await _once(request, submission, submit)
    services.drain.admit()
    if prefers_async(request):
        return queued(request, await shield(submit(await submission(False))))
    media = choose(request.headers.get("Accept"), (EVENT_STREAM, JSON))
    wanted = await submission(media == EVENT_STREAM)
    async with own_run(request, _begun(submit, wanted)) as run_id:
        if media == EVENT_STREAM:
            return await stream_run(request, run_id)
        async with request.app[IN_FLIGHT].until_stop():
            ended = await end_of(services.log, run_id)
        return respond(ended, request)


async def _begun(submit: Submit, start: StartRequest) -> RunId:
    return RunId((await submit(start)).stream_id)


async def _once(request: web.Request, submission: Submission, submit: Submit) -> web.Response:
    """A stream cannot be given again, so a key goes with a queued run only (IDEM-1)."""
    if not prefers_async(request):
        raise BadIdempotencyKey("Here an Idempotency-Key goes with Prefer: respond-async only.")
    form = accepted(services_of(request).server.prefix)
    return await once(request, form, partial(submission, False), begin=partial(_begun, submit))


async def _submission(request: web.Request, streaming: bool) -> StartRequest:
    body = await body_of(request, RunWorkflowBody)
    queue = body.queue_spec(services_of(request).async_run, later=prefers_async(request))
    return body.request(tenant_of(request), request.match_info["name"], queue, streaming=streaming)


async def _after(request: web.Request, body_type: type[MayQueue], streaming: bool) -> StartRequest:
    """How the run that goes on is to be opened. What it is of, the run before it says."""
    body = await (optional_body_of if body_type is ResumeBody else body_of)(request, body_type)
    queue = body.queue_spec(services_of(request).async_run, later=prefers_async(request))
    return StartRequest(tenant=tenant_of(request), agent="", messages=(), streaming=streaming, queue=queue)


def _going_on(run_id: RunId, start: StartRequest) -> GoOn:
    return GoOn(
        tenant=start.tenant,
        run_id=run_id,
        streaming=start.streaming,
        queue=start.queue,
        new_run_id=start.run_id,
        alongside=start.alongside,
    )
