"""How many calls to one provider may be under way at once (CONC)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from app.metrics import Metrics

TELL_AFTER_S = 1.0
"""A wait for a place that is longer than this is told in the run (CONC-2)."""


class Places:
    """A limited number of places per provider, given out first come, first served.

    A place covers the whole response, its stream included. Nobody is turned away; a wait ends with a place,
    or with the caller's cancellation, which its deadline is one of.
    """

    def __init__(self, limit: int, metrics: Metrics, tell_after_s: float = TELL_AFTER_S) -> None:
        self._limit = limit
        self._metrics = metrics
        self._tell_after_s = tell_after_s
        self._free: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def one(self, provider: str, on_long_wait: Callable[[], None]) -> AsyncIterator[None]:
        """Hold a place while the block lasts. `on_long_wait` is told of a wait that has taken a while."""
        free = self._free.get(provider)
        if free is None:
            free = self._free[provider] = asyncio.Semaphore(self._limit)
        if free.locked():
            await self._wait(free, provider, on_long_wait)
        else:
            await free.acquire()
        in_use = self._metrics.model_places_in_use.labels(provider)
        in_use.inc()
        try:
            yield
        finally:
            in_use.dec()
            free.release()

    async def _wait(self, free: asyncio.Semaphore, provider: str, on_long_wait: Callable[[], None]) -> None:
        waiting = self._metrics.model_calls_waiting.labels(provider)
        waiting.inc()
        tell = asyncio.get_running_loop().call_later(self._tell_after_s, on_long_wait)
        try:
            await free.acquire()
        finally:
            tell.cancel()
            waiting.dec()
