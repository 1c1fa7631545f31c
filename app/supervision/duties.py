"""Periodic duties: each at its own pace, its failures answered in one place."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.metrics import Metrics
from app.outage import Outage
from app.supervision.singleton import Singleton, Term
from domain.errors import Unavailable

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Duty:
    """One kind of periodic work. `perform` is one round; it looks at its term before each effect."""

    name: str
    period_s: float
    perform: Callable[[Term], Awaitable[object]]
    leave: Callable[[], object] = lambda: None
    """Called when the term has ended: somebody else does it now."""


class Duties:
    """All of this host's periodic work that one host of all should do (SINGLE-1)."""

    def __init__(self, singleton: Singleton, metrics: Metrics) -> None:
        self._singleton = singleton
        self._metrics = metrics
        self._duties: list[Duty] = []
        self._outages: dict[str, Outage] = {}

    def add(self, duty: Duty) -> None:
        """Before `run`."""
        self._duties.append(duty)
        self._outages[duty.name] = Outage(log, duty.name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(duty.name for duty in self._duties)

    async def run(self, until: asyncio.Event) -> None:
        """Perform them until that event, so that another host can begin; wait for the cancellation then."""
        if self._duties:
            await self._run_until(until)
        await asyncio.Event().wait()

    async def _run_until(self, until: asyncio.Event) -> None:
        stopping = asyncio.ensure_future(until.wait())
        working = asyncio.ensure_future(self._singleton.run(self._perform_all))
        try:
            await asyncio.wait({stopping, working}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
                raise RuntimeError("periodic work ended by itself")
        finally:
            stopping.cancel()
            working.cancel()
            await asyncio.gather(stopping, working, return_exceptions=True)

    async def _perform_all(self, term: Term) -> None:
        async with asyncio.TaskGroup() as duties:
            for duty in self._duties:
                duties.create_task(self._keep_performing(duty, term), name=f"duty {duty.name}")

    async def _keep_performing(self, duty: Duty, term: Term) -> None:
        """The first round comes soon: the host that did this before may have died in the middle of one."""
        try:
            await asyncio.sleep(random.uniform(0, min(duty.period_s, 1.0)))  # noqa: S311 - jitter, no secret
            while True:
                await self._round(duty, term)
                await asyncio.sleep(duty.period_s * random.uniform(0.8, 1.0))  # noqa: S311
        finally:
            duty.leave()

    async def _round(self, duty: Duty, term: Term) -> None:
        """A failure is logged once, here; the next round is the answer to it."""
        outcome = "failed"
        try:
            if term.lasts():
                await duty.perform(term)
            outcome = "done"
        except Unavailable as error:
            outcome = "postponed"
            self._outages[duty.name].met(error)
        except Exception:
            log.exception("duty.failed", extra={"duty": duty.name})
        else:
            self._outages[duty.name].over()
        self._metrics.duties.labels(duty.name, outcome).inc()
