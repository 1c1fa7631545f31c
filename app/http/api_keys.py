"""API keys of the caller's tenant: making, listing and revoking them."""

import msgspec
from aiohttp import web

from app.http.bodies import CreateKeyBody, ListQuery, NoQuery
from app.http.decoding import body_of, query_of
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from app.keys.key import ApiKey
from projections.read.window import Window


class NewKey(ApiKey, frozen=True, kw_only=True):
    """A key that was just made. Its secret is told here and nowhere else."""

    secret: str


class KeyList(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list, revoked and expired keys too."""

    keys: list[ApiKey]
    skip: int
    take: int
    more: bool


async def create_key(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    body = await body_of(request, CreateKeyBody)
    key, secret = await services_of(request).keys.create(
        tenant_of(request), body.printable_name(), body.scopes, expires_in_s=body.expires_in or None
    )
    return reply(NewKey(**msgspec.structs.asdict(key), secret=secret), status=201)


async def list_keys(request: web.Request) -> web.Response:
    wanted = query_of(request, ListQuery)
    skip, take = Window.clamped(wanted.skip, wanted.take)
    keys = await services_of(request).keys.list(tenant_of(request), skip=skip, take=take + 1)
    return reply(KeyList(keys=keys[:take], skip=skip, take=take, more=len(keys) > take))


async def revoke_key(request: web.Request) -> web.Response:
    """By id or by prefix. This host forgets it at once, others within `auth.cache_ttl`."""
    query_of(request, NoQuery)
    services = services_of(request)
    revoked = await services.keys.revoke(tenant_of(request), request.match_info["id"])
    services.keyring.forget(revoked.prefix)
    return reply(revoked)
