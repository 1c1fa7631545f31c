"""This host: what it is, whether it is well, what it counts, and what its API looks like."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from aiohttp import web
from prometheus_client.exposition import choose_encoder

from app.http.bodies import NoQuery
from app.http.decoding import query_of
from app.http.negotiation import JSON
from app.http.replies import reply
from app.http.services import DESCRIPTION, About, Services, services_of
from domain.errors import Unavailable

READY_WITHIN_S = 2.0
LAGS_WITHIN_S = 1.0


class Meta(About, frozen=True, kw_only=True):
    """What this host is, and for how long it has been."""

    uptime_s: float


class Health(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "ok"


class Pointers(msgspec.Struct, frozen=True, kw_only=True):
    """Where to go from the root."""

    name: str
    version: str
    api: str
    openapi: str
    ready: str
    metrics: str


class NotReady(Unavailable):
    """The store does not answer. Send requests to another host, or wait."""

    code = "store_unavailable"


async def get_meta(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    about = services_of(request).about
    uptime_s = (datetime.now(UTC) - about.started_at).total_seconds()
    return reply(Meta(**msgspec.structs.asdict(about), uptime_s=uptime_s))


async def get_root(request: web.Request) -> web.Response:
    version, prefix = services_of(request).about.version, services_of(request).server.prefix
    where = {"openapi": "/openapi.json", "ready": "/health/ready", "metrics": "/metrics"}
    return reply(Pointers(name="tracon", version=version, api=f"{prefix}/api", **where))


async def is_live(request: web.Request) -> web.Response:
    """The event loop turns. Nothing else is asked: a store that is down is no reason to kill its hosts."""
    return reply(Health())


async def is_ready(request: web.Request) -> web.Response:
    """Whether the store answers, so that a submission sent here could be kept."""
    await _ask_the_store(services_of(request))
    return reply(Health())


async def get_metrics(request: web.Request) -> web.Response:
    """Lags are asked for when somebody looks. Without a store they stay as they were; see tracon_store_up."""
    services = services_of(request)
    with suppress(Unavailable, TimeoutError):
        async with asyncio.timeout(LAGS_WITHIN_S):
            await _note_lags(services)
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return web.Response(body=encode(services.metrics.registry), headers={"Content-Type": content_type})


async def get_openapi(request: web.Request) -> web.Response:
    return web.Response(body=request.app[DESCRIPTION], content_type=JSON)


async def _note_lags(services: Services) -> None:
    metrics = services.metrics
    for name, failing in services.views.failing().items():
        metrics.projection_stopped.labels(name).set(failing)
    for name, lag in (await services.views.lags()).items():
        metrics.projection_lag.labels(name).set(lag.events)
        metrics.projection_lag_seconds.labels(name).set(lag.seconds)


async def _ask_the_store(services: Services) -> None:
    if down := services.log.down:
        raise down
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            await services.log.end_position()
    except TimeoutError:
        raise NotReady(f"The store did not answer within {READY_WITHIN_S:g} s.") from None
