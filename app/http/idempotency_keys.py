"""Idempotency keys for operators: which there are, and a word on those that stay uncertain (IDEM-5)."""

import msgspec
from aiohttp import web

from app.http.bodies import CompleteKeyBody, KeysQuery, NoQuery
from app.http.decoding import body_of, query_of
from app.http.display import encode
from app.http.negotiation import JSON
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from app.idempotency.answer import Answer
from projections.idempotency_record import KeyState
from projections.read.idempotency import list_keys


class KeyDecided(msgspec.Struct, frozen=True, kw_only=True):
    """What the key is from now on."""

    key: str
    state: KeyState


async def list_idempotency_keys(request: web.Request) -> web.Response:
    """Newest first. Those in progress whose run is nobody's any more are the uncertain ones."""
    wanted = query_of(request, KeysQuery)
    page = await list_keys(
        services_of(request).pool,
        tenant_of(request),
        wanted.state or None,
        skip=wanted.skip,
        take=wanted.take,
    )
    return reply(page)


async def release_key(request: web.Request) -> web.Response:
    """What it was used for may be done again."""
    query_of(request, NoQuery)
    name = request.match_info["key"]
    await services_of(request).decisions.release(tenant_of(request), name)
    return reply(KeyDecided(key=name, state=KeyState.RELEASED))


async def complete_key(request: web.Request) -> web.Response:
    """What it was used for was done, and this is what is answered from now on."""
    query_of(request, NoQuery)
    name, body = request.match_info["key"], await body_of(request, CompleteKeyBody)
    answer = Answer(status=body.status, content_type=JSON, body=encode(body.answer))
    await services_of(request).decisions.complete(tenant_of(request), name, answer)
    return reply(KeyDecided(key=name, state=KeyState.COMPLETED))
