"""The providers: as this host's calls have shown them, and as they looked when nobody called."""

from collections.abc import Mapping
from contextlib import suppress

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import query_of
from app.http.replies import reply
from app.http.request_keys import PRINCIPAL
from app.http.services import Services, services_of
from app.models.circuits import ProviderHealth
from app.supervision.provider_watch import Sighting
from domain.errors import Unavailable


class ProviderSeen(ProviderHealth, frozen=True, kw_only=True):
    """Its circuit, which goes by calls alone (BREAK-1); and how it looked apart from any call."""

    seen: Sighting | None
    """None: nobody looks (`health.background_interval`), or has yet; or the database does not say."""


class ProviderList(msgspec.Struct, frozen=True, kw_only=True):
    """Each provider with the circuit that the caller's own runs pass on this host (BREAK-1)."""

    providers: tuple[ProviderSeen, ...]


async def get_health(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    services, tenant = services_of(request), request[PRINCIPAL].tenant
    accounts = (services.accounts.of(provider, tenant) for provider in services.providers)
    healths, seen = map(services.circuits.health, accounts), await _seen(services)
    listed = (ProviderSeen(**msgspec.structs.asdict(one), seen=seen.get(one.provider)) for one in healths)
    return reply(ProviderList(providers=tuple(listed)))


async def _seen(services: Services) -> Mapping[str, Sighting]:
    """Circuits are shown without the database, too."""
    if services.watch is not None:
        with suppress(Unavailable):
            return await services.watch.seen()
    return {}
