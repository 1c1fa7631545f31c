"""Questions to the store that must be answered soon or not at all."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar

from aiohttp import web

from app.http.services import Services
from projections.read.approvals import count_pending
from projections.read.jobs import QueueDepth, queue_depths
from projections.views import Lag

T = TypeVar("T")


class Probe(Generic[T]):
    """Asks one thing at a time, however many want to know.

    A query that is cancelled holds its connection until the server has heard of that, which a server that
    hangs does not. So nobody cancels it: who asks waits for a while and leaves, and the next joins the wait.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[T] | None = None

    async def answer(self, within_s: float) -> T:
        """The answer, or what the question raised. Raise TimeoutError if neither comes in time."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._asked())
            self._asking.add_done_callback(_heard)
        asking = self._asking
        await asyncio.wait({asking}, timeout=within_s)
        if not asking.done():
            raise TimeoutError
        return asking.result()

    def close(self) -> None:
        """Nobody wants to know any more."""
        if self._asking is not None:
            self._asking.cancel()

    async def _asked(self) -> T:
        return await self._ask()


@dataclass(frozen=True, kw_only=True)
class Probes:
    """What this host asks its store when somebody asks the host."""

    store: Probe[int]
    lags: Probe[dict[str, Lag]]
    depths: Probe[dict[str, QueueDepth]]
    approvals: Probe[int]

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(
            store=Probe(services.log.end_position),
            lags=Probe(services.views.lags),
            depths=Probe(partial(queue_depths, services.pool)),
            approvals=Probe(partial(count_pending, services.pool)),
        )

    def close(self) -> None:
        self.store.close()
        self.lags.close()
        self.depths.close()
        self.approvals.close()


PROBES = web.AppKey("probes", Probes)


def _heard(asking: asyncio.Task[Any]) -> None:
    """A failure that everybody had left before is nobody's failure."""
    if not asking.cancelled():
        asking.exception()
