"""The providers of this host, as its calls have shown them."""

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import query_of
from app.http.replies import reply
from app.http.request_keys import PRINCIPAL
from app.http.services import services_of
from app.models.circuits import ProviderHealth


class ProviderList(msgspec.Struct, frozen=True, kw_only=True):
    """Each provider with the circuit that the caller's own runs pass on this host (BREAK-1)."""

    providers: tuple[ProviderHealth, ...]


async def get_health(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    services, tenant = services_of(request), request[PRINCIPAL].tenant
    accounts = (services.accounts.of(provider, tenant) for provider in services.providers)
    return reply(ProviderList(providers=tuple(map(services.circuits.health, accounts))))
