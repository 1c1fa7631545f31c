"""Responses: runs that can be read again, watched from any place, cancelled and gone on from."""

import asyncio
from asyncio import shield
from contextlib import aclosing, suppress
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from app.http.bodies import Body, NoQuery
from app.http.decoding import body_of, query_of, read_body
from app.http.events import name_run
from app.http.idempotency import is_keyed, once
from app.http.openai import rendering
from app.http.openai.answer_form import check_schema
from app.http.openai.conversations import session_named
from app.http.openai.keys import QUEUED_RESPONSE, RESPONSE
from app.http.openai.names import response_id, run_of
from app.http.openai.refusals import CannotGoOn, NoSuchResponse, PreviousNotFound
from app.http.openai.rendering import QUEUED
from app.http.openai.response_object import ResponseEcho
from app.http.openai.response_request import API, ResponseRequest
from app.http.openai.response_so_far import ResponseSoFar
from app.http.openai.response_teller import ResponseTeller
from app.http.openai.streams import ResponseStream
from app.http.openai.waiting import wait_for_end
from app.http.own_run import own_run
from app.http.replies import reply
from app.http.request_keys import STREAMING
from app.http.services import STREAMS, Services, services_of, tenant_of
from app.http.watching import each_until_end, until_end
from app.supervision.run_service import StartRequest
from app.supervision.runs import RunNotFound
from app.supervision.session_turns import SessionBusy
from app.supervision.sessions import SessionMoved, place_after
from domain.decide import RunAlreadyEnded
from domain.events import Recorded, RunCreated, RunEvent
from domain.evolve import fold
from domain.ids import RunId, run_stream
from domain.run import RunStatus

_CANCELLED_WITHIN_S = 2.0
"""How long who cancels waits for the end. It may take longer; the answer says how far it is."""


class ResponseQuery(Body, frozen=True, kw_only=True):
    stream: bool = False
    """Its events, for a response that is under way as for one that has ended."""
    starting_after: Annotated[int, Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET
    """The `sequence_number` of the last event that the client has; what follows it is sent."""
    include: tuple[str, ...] = msgspec.field(default=(), name="include[]")
    """Taken, and changes nothing."""
    include_obfuscation: bool = False
    """Nothing is obfuscated."""


async def create_response(request: web.Request) -> web.StreamResponse:
    query_of(request, NoQuery)
    if is_keyed(request):
        return await _create_once(request)
    services_of(request).drain.admit()
    body = await body_of(request, ResponseRequest)
    begun = _begin(services_of(request), body, await _submission(request, body))
    if body.background:
        return await _in_background(request, body, name_run(request, await shield(begun)))
    async with own_run(request, begun) as run_id:
        if body.stream:
            return await _stream(request, run_id, ResponseTeller(run_id))
        so_far = ResponseSoFar(run_id)
        await wait_for_end(request, run_id, so_far.see)
        return rendering.response(so_far).response()


async def _in_background(request: web.Request, body: ResponseRequest, run_id: RunId) -> web.StreamResponse:
    """The run is no concern of whoever asks, who may watch it all the same."""
    if body.stream:
        return await _stream(request, run_id, ResponseTeller(run_id))
    created = await services_of(request).log.read_stream(run_stream(run_id), limit=1)
    return rendering.render(run_id, created, api=QUEUED).response()


async def _create_once(request: web.Request) -> web.Response:
    """The key is looked at before the body is: what was answered before is not refused now."""
    form = QUEUED_RESPONSE if _asks_for_background(await read_body(request)) else RESPONSE

    async def submission() -> StartRequest:
        return await _submission(request, await body_of(request, ResponseRequest))

    async def begin(submitted: StartRequest) -> RunId:
        return await _begin(services_of(request), await body_of(request, ResponseRequest), submitted)

    return await once(request, form, submission, begin=begin)


class _Background(msgspec.Struct):
    background: Any = None


def _asks_for_background(raw: bytes) -> bool:
    """What is no request at all is refused later."""
    try:
        return msgspec.json.decode(raw, type=_Background).background is True
    except (msgspec.DecodeError, RecursionError):
        return False


async def _submission(request: web.Request, body: ResponseRequest) -> StartRequest:
    submission = body.submission(tenant_of(request), services_of(request).async_run)
    await check_schema(submission.overrides, "text.format.schema")
    return submission


async def get_response(request: web.Request) -> web.StreamResponse:
    query, run_id = query_of(request, ResponseQuery), _run_of(request)
    history = await _stored(services_of(request), tenant_of(request), run_id)
    if query.stream and request.method != "HEAD":
        after = -1 if query.starting_after is msgspec.UNSET else query.starting_after
        return await _stream(request, run_id, ResponseTeller(run_id, after))
    so_far = ResponseSoFar(run_id)
    for recorded in history:
        so_far.see(recorded)
    return reply(so_far.response)


async def cancel_response(request: web.Request) -> web.Response:
    """The response as it is a moment later. To cancel what is cancelled already is no error."""
    query_of(request, NoQuery)
    services, tenant, run_id = services_of(request), tenant_of(request), _run_of(request)
    await _stored(services, tenant, run_id)
    try:
        await services.runs.cancel(tenant, run_id)
    except RunAlreadyEnded as ended:
        if ended.status is not RunStatus.CANCELLED:
            raise
    so_far = ResponseSoFar(run_id)
    with suppress(TimeoutError):
        async with asyncio.timeout(_CANCELLED_WITHIN_S):
            await each_until_end(services.log, run_id, so_far.see)
    return reply(so_far.response)


async def _begin(services: Services, body: ResponseRequest, submission: StartRequest) -> RunId:
    if body.previous_response_id is not None:
        return await _go_on(services, submission, body.previous_response_id)
    if body.conversation_id is not None:
        await session_named(services.log, submission.tenant, body.conversation_id, limit=1)
    return await services.runs.start(msgspec.structs.replace(submission, session_id=body.conversation_id))


async def _go_on(services: Services, submission: StartRequest, previous: str) -> RunId:
    """Begin where the previous response ended, knowing what it knew."""
    tenant, run_id = submission.tenant, run_of(previous)
    try:
        if run_id is None:
            raise NoSuchResponse(previous)
        history = await _stored(services, tenant, run_id)
    except NoSuchResponse:
        raise PreviousNotFound(previous) from None
    run = fold(run_id, (recorded.event for recorded in history))
    if run.status not in (RunStatus.COMPLETED, RunStatus.CANCELLED):
        raise CannotGoOn(previous, run.status)
    while True:
        # Nobody knows what its session will have come to when a worker takes it.
        place = await place_after(services.log, tenant, run, alone=submission.queue is not None)
        placed = msgspec.structs.replace(
            submission,
            session_id=place.session_id,
            session_version=place.version,
            alongside=(*submission.alongside, *place.alongside),
        )
        try:
            return await services.runs.start(placed)
        except (SessionMoved, SessionBusy):
            continue  # somebody else goes on from there, too


def _run_of(request: web.Request) -> RunId:
    text = request.match_info["id"]
    run_id = run_of(text)
    if run_id is None:
        raise NoSuchResponse(text)
    return name_run(request, run_id)


async def _stored(services: Services, tenant: str, run_id: RunId) -> list[Recorded[RunEvent]]:
    """The events of a response that may be read again. Raise NoSuchResponse for any other run."""
    try:
        history = await services.runs.load(tenant, run_id)
    except RunNotFound:
        raise NoSuchResponse(response_id(run_id)) from None
    created = history[0].event
    origin = created.origin if isinstance(created, RunCreated) else None
    if origin is None or origin.api != API or not msgspec.convert(origin.echo, ResponseEcho).store:
        raise NoSuchResponse(response_id(run_id))
    return history


async def _stream(request: web.Request, run_id: RunId, teller: ResponseTeller) -> web.StreamResponse:
    services, request[STREAMING] = services_of(request), True
    async with (
        request.app[STREAMS].open(ResponseStream(request, teller)) as stream,
        aclosing(until_end(services.log, run_id, 0)) as batches,
    ):
        async for batch in batches:
            if told := b"".join(map(teller.tell, batch)):
                await stream.send(told)
    return stream
