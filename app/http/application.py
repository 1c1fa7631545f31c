"""The HTTP face of a host: one application made from the table of routes, and the port that it listens on."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from app.http.auth import GATEKEEPER, Gatekeeper, authenticate
from app.http.display import encode
from app.http.host import get_root
from app.http.in_flight import IN_FLIGHT, InFlight, hold
from app.http.key_watch import KeyWatch
from app.http.locality import is_loopback
from app.http.middleware import observe, stamp, tell_problems
from app.http.openapi import describe
from app.http.probes import PROBES, Probes
from app.http.rate_limit import RateLimiter
from app.http.route import add_routes
from app.http.routes import ROUTES
from app.http.services import DESCRIPTION, SERVICES, STREAMS, Services
from app.http.sse import OpenStreams
from app.http.wire import Listener, Patience
from app.settings import ServerSettings

log = logging.getLogger(__name__)

_SHUTDOWN_S = 5.0
_KEEPALIVE_S = 75.0
"""A connection that asks for nothing for so long is closed."""


def build_application(services: Services, *, api: bool = True) -> web.Application:
    """Everything but the port. Without the API there is what operators look at: probes and metrics."""
    server = services.server
    application = web.Application(
        middlewares=(hold, observe, tell_problems, authenticate), client_max_size=server.max_body_bytes
    )
    application[SERVICES] = services
    services.metrics.build_info.labels(services.about.version, services.about.python).set(1)
    in_flight = application[IN_FLIGHT] = InFlight()
    application[STREAMS] = OpenStreams(server.sse_keepalive, services.metrics.sse_streams, in_flight)
    application[GATEKEEPER] = Gatekeeper(
        services.keyring, services.last_used.note, services.auth, RateLimiter(services.rate_limit)
    )
    application[PROBES] = Probes.of(services)
    application[DESCRIPTION] = encode(describe(ROUTES, prefix=server.prefix, version=services.about.version))
    application.on_response_prepare.append(stamp)
    application.cleanup_ctx.append(_keep_streams_open)
    application.on_shutdown.append(_stop)
    application.router.add_get("/", get_root)
    add_routes(application, ROUTES if api else [route for route in ROUTES if route.at_root], server.prefix)
    return application


def bind(server: ServerSettings) -> socket.socket:
    """Take the port, but no connection yet. Raise OSError, naming the address, for one that cannot be had."""
    if not is_loopback(server.host):
        log.info("http.exposed", extra={"host": server.host, "served": "clients with a key"})
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((server.host, server.port))
    except OSError as error:
        listener.close()
        raise OSError(
            f"cannot listen on {server.host} port {server.port}: {error.strerror or error}"
        ) from error
    return listener


@asynccontextmanager
async def listen(application: web.Application, listener: socket.socket) -> AsyncIterator[str]:
    """Accept connections on a bound socket while the block lasts; its value is the URL."""
    # A handler whose client hangs up is cancelled at once: handlers only watch, runs belong to their actors.
    services = application[SERVICES]
    runner = Listener(
        application,
        services.metrics,
        Patience(services.server.head_timeout, services.server.write_timeout),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=_SHUTDOWN_S,
        keepalive_timeout=_KEEPALIVE_S,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener, backlog=1024).start()
        yield _url(*listener.getsockname()[:2])
    finally:
        await runner.cleanup()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _keep_streams_open(application: web.Application) -> AsyncIterator[None]:
    services, streams = application[SERVICES], application[STREAMS]
    keys = KeyWatch(streams, services.keyring, services.auth.cache_ttl)
    timers = (
        asyncio.create_task(streams.keep_open(), name="sse keep-alive"),
        asyncio.create_task(keys.run(), name="sse keys"),
    )
    yield
    for timer in timers:
        timer.cancel()
    for timer in timers:
        with suppress(asyncio.CancelledError):
            await timer


async def _stop(application: web.Application) -> None:
    application[PROBES].close()
    application[STREAMS].close()
