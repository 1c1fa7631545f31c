"""The providers of this host, as its calls have shown them."""

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import query_of
from app.http.replies import reply
from app.http.services import services_of
from app.models.circuits import ProviderHealth


class ProviderList(msgspec.Struct, frozen=True, kw_only=True):
    """Each provider with its circuit, which is this host's own (BREAK-1)."""

    providers: tuple[ProviderHealth, ...]


async def get_health(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    services = services_of(request)
    return reply(ProviderList(providers=tuple(map(services.circuits.health, services.providers))))
