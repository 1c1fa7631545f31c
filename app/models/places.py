"""How many calls on one account of a provider may be under way at once (CONC)."""

import asyncio
from collections.abc import Callable

from app.metrics import Metrics
from app.models.accounts import Account

TELL_AFTER_S = 1.0
"""A wait for a place that is longer than this is told in the run (CONC-2)."""


class Places:
    """A limited number of places per provider and key, given out first come, first served.

    A place covers the whole response, its stream included. Nobody is turned away; a wait ends with a place,
    or with the caller's cancellation, which its deadline is one of.
    """

    def __init__(self, limit: int, metrics: Metrics, tell_after_s: float = TELL_AFTER_S) -> None:
        self._limit = limit
        self._metrics = metrics
        self._tell_after_s = tell_after_s
        self._at: dict[Account, _Queue] = {}

    async def take(self, account: Account, on_long_wait: Callable[[], None]) -> None:
        """Return with a place in hand, which `give_back` frees. `on_long_wait` is told of a long wait."""
        at = self._at.get(account)
        if at is None:
            at = self._at[account] = _Queue(self._limit, self._metrics, account.provider)
        if at.free.locked():
            await at.wait(self._tell_after_s, on_long_wait)
        else:
            await at.free.acquire()
        at.in_use.inc()

    def give_back(self, account: Account) -> None:
        """The place is free for the one who has waited longest."""
        at = self._at[account]
        at.in_use.dec()
        at.free.release()


class _Queue:
    """The places of one account. What is shown of them is the sum over the provider's accounts."""

    def __init__(self, limit: int, metrics: Metrics, provider: str) -> None:
        self.free = asyncio.Semaphore(limit)
        self.in_use = metrics.model_places_in_use.labels(provider)
        self.waiting = metrics.model_calls_waiting.labels(provider)

    async def wait(self, tell_after_s: float, on_long_wait: Callable[[], None]) -> None:
        self.waiting.inc()
        tell = asyncio.get_running_loop().call_later(tell_after_s, on_long_wait)
        try:
            await self.free.acquire()
        finally:
            tell.cancel()
            self.waiting.dec()
