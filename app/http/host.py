"""This host: what it is, whether it is well, what it counts, and what its API looks like."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from aiohttp import web
from prometheus_client.exposition import choose_encoder

from app.http.bodies import NoQuery
from app.http.decoding import query_of
from app.http.negotiation import JSON
from app.http.probes import PROBES
from app.http.replies import reply
from app.http.services import DESCRIPTION, About, Services, services_of
from app.jobs.specs import lanes_of
from app.metrics import Metrics
from domain.errors import Unavailable
from projections.read.jobs import QueueDepth
from projections.views import Lag

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
    """Whether a submission sent here would be taken and could be kept: not while draining (DRAIN)."""
    services_of(request).drain.admit()
    if down := services_of(request).log.down:
        raise down
    try:
        await request.app[PROBES].store.answer(READY_WITHIN_S)
    except TimeoutError:
        raise NotReady(f"The store did not answer within {READY_WITHIN_S:g} s.") from None
    return reply(Health())


async def get_metrics(request: web.Request) -> web.Response:
    """The store is asked when somebody looks. Without it things stay as they were; see tracon_store_up."""
    services = services_of(request)
    services.metrics.store_up.set(services.log.down is None)
    for name, failing in services.views.failing().items():
        services.metrics.projection_stopped.labels(name).set(failing)
    with suppress(Unavailable, TimeoutError):
        _note(await request.app[PROBES].lags.answer(LAGS_WITHIN_S), services.metrics)
        _note_depths(await request.app[PROBES].depths.answer(LAGS_WITHIN_S), services)
        pending = await request.app[PROBES].approvals.answer(LAGS_WITHIN_S)
        services.metrics.approvals_waiting.set(pending)
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return web.Response(body=encode(services.metrics.registry), headers={"Content-Type": content_type})


async def get_openapi(request: web.Request) -> web.Response:
    return web.Response(body=request.app[DESCRIPTION], content_type=JSON)


def _note(lags: Mapping[str, Lag], metrics: Metrics) -> None:
    for name, lag in lags.items():
        metrics.projection_lag.labels(name).set(lag.events)
        metrics.projection_lag_seconds.labels(name).set(lag.seconds)


def _note_depths(depths: Mapping[str, QueueDepth], services: Services) -> None:
    """Lanes of the settings are shown when they are empty too."""
    empty = QueueDepth(waiting=0, oldest_s=0.0)
    for lane in {*lanes_of(services.async_run), *depths}:
        depth = depths.get(lane, empty)
        services.metrics.jobs_waiting.labels(lane).set(depth.waiting)
        services.metrics.job_oldest_seconds.labels(lane).set(depth.oldest_s)
