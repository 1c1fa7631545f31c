"""A run that a request begins and waits for, and what becomes of it when the client hangs up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from app.http.events import name_run
from app.http.in_flight import IN_FLIGHT
from app.http.services import services_of, tenant_of
from domain.errors import TraconError
from domain.ids import RunId

HUNG_UP = "the client hung up"


@asynccontextmanager
async def own_run(request: web.Request, opening: Awaitable[RunId]) -> AsyncIterator[RunId]:
    """Begin the run; in the block it is watched.

    Whoever hangs up while it is being opened does not leave it half open. Whether it then goes on is what
    `server.on_disconnect` says. Runs with an Idempotency-Key always do, and are none of this (IDEM-6).
    """
    opened = asyncio.ensure_future(opening)
    try:
        yield name_run(request, await asyncio.shield(opened))
    finally:
        if services_of(request).server.on_disconnect == "cancel" and _has_left(request):
            with suppress(TraconError):  # none was begun, or it has ended, or its pen is lost: so be it
                await services_of(request).runs.cancel(tenant_of(request), await opened, HUNG_UP)


def _has_left(request: web.Request) -> bool:
    """Whether it is the client that is gone. One that a stopping host lets go did not leave."""
    gone = request.transport is None or request.transport.is_closing()
    return gone and not request.app[IN_FLIGHT].stopping
