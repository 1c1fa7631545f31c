"""One host of all does the periodic work: a lease in the database, trusted for less than it was granted."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Protocol

import asyncpg

from app.clock import elapsed_s
from app.db.errors import DatabaseError
from app.db.impatience import answered_within
from app.db.pool import translated
from app.faults import fault_point
from app.metrics import Metrics
from app.outage import Outage
from app.settings import SingletonExecutionSettings
from app.supervision.sql import sql

log = logging.getLogger(__name__)

PERIODIC_WORK = "periodic-work"
"""The lease for everything that one host of all does from time to time."""

_MARGIN = 0.1
"""The part of a lease that is left for stopping (SINGLE-2)."""

_RELEASE_S = 1.0


class Term(Protocol):
    """The time for which this host does the work. It may end at any await: ask before each effect."""

    def lasts(self) -> bool: ...


class Unlimited:
    """Every host does its own work: nobody takes it over."""

    def lasts(self) -> bool:
        return True


class LeaseTerm:
    """One epoch of a lease. It counts from when it was *asked* for and ends before the database's does.

    The monotonic clock alone says how long that is, and can only make it end sooner: the database began to
    count later than this host did.
    """

    def __init__(self, epoch: int, asked_at: float, duration_s: float, clock: Callable[[], float]) -> None:
        self.epoch = epoch
        self._duration_s = duration_s * (1 - _MARGIN)
        self._clock = clock
        self.extend(asked_at)

    def extend(self, asked_at: float) -> None:
        """It was renewed, by a statement that was sent then."""
        self._ends_at = asked_at + self._duration_s

    @property
    def left_s(self) -> float:
        return self._ends_at - self._clock()

    def lasts(self) -> bool:
        return self.left_s > 0


Work = Callable[[Term], Awaitable[object]]
"""Goes on until it is cancelled, which it is when the term ends."""


class Singleton:
    """Has the work done by whoever holds the lease `name`; with the setting off, by every host (SINGLE-1)."""

    def __init__(
        self,
        name: str,
        owner: str,
        pool: asyncpg.Pool,
        settings: SingletonExecutionSettings,
        metrics: Metrics,
        clock: Callable[[], float] = elapsed_s,
    ) -> None:
        self._name = name
        self._owner = settings.owner_id or owner
        self._pool = pool
        self._enabled = settings.enabled
        self._duration_s = settings.lease_duration
        self._third_s = settings.lease_duration / 3
        self._held = metrics.lease_held.labels(name)
        self._clock = clock
        self._outage = Outage(log, f"lease {name}")

    async def run(self, work: Work) -> None:
        """Do the work whenever it falls to this host. Returns only if the work does, which it should not."""
        if not self._enabled:
            self._held.set(1)
            await work(Unlimited())
            return
        while True:
            term, runs_for_s = await self._acquire()
            if term is not None:
                await self._hold(term, work)
            # Not before it runs out, and not long after, but not all of the waiting hosts together.
            pause_s = min(runs_for_s, self._third_s) + self._third_s * random.uniform(0.01, 0.1)  # noqa: S311
            await asyncio.sleep(pause_s)

    async def _acquire(self) -> tuple[LeaseTerm | None, float]:
        """A term, or for how long somebody else's still runs."""
        asked_at = self._clock()
        try:
            [row] = await self._ask(
                "acquire_lease", self._name, self._owner, self._duration_s, within_s=self._third_s
            )
        except (DatabaseError, asyncpg.PostgresError) as error:
            self._outage.met(error)
            return None, self._third_s
        self._outage.over()
        if row["epoch"] is None:
            return None, max(0.0, row["runs_for_s"])
        return LeaseTerm(row["epoch"], asked_at, self._duration_s, self._clock), 0.0

    async def _hold(self, term: LeaseTerm, work: Work) -> None:
        """Work until the term ends. Whatever ends it, the work has stopped when this returns."""
        about = {"lease": self._name, "epoch": term.epoch}
        log.info("lease.acquired", extra=about)
        self._held.set(1)
        working = asyncio.ensure_future(work(term))
        try:
            await self._renew_until_lost(term, working)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            self._held.set(0)
            log.info("lease.given_up", extra=about)
            await self._release(term)

    async def _renew_until_lost(self, term: LeaseTerm, working: asyncio.Future[object]) -> None:
        pause_s = self._third_s
        while term.lasts():
            await asyncio.wait({working}, timeout=min(pause_s, term.left_s))
            if working.done():
                working.result()
                raise RuntimeError("periodic work ended by itself")
            if not term.lasts():
                break
            renewed = await self._renew(term)
            if renewed is False:
                break
            pause_s = self._third_s if renewed else self._third_s / 4
        log.warning("lease.lost", extra={"lease": self._name, "epoch": term.epoch})

    async def _renew(self, term: LeaseTerm) -> bool | None:
        """Whether the term goes on; None if nobody could say."""
        asked_at = self._clock()
        fault_point("lease.renew.before")
        named = (self._name, self._owner, term.epoch, self._duration_s)
        try:
            renewed = await self._ask("renew_lease", *named, within_s=term.left_s)
        except (DatabaseError, asyncpg.PostgresError) as error:
            self._outage.met(error)
            return None
        self._outage.over()
        fault_point("lease.renew.after")
        if renewed:
            term.extend(asked_at)
        return bool(renewed)

    async def _release(self, term: LeaseTerm) -> None:
        """Let the next one begin at once. If it cannot be said, the lease runs out by itself."""
        try:
            await self._ask("release_lease", self._name, self._owner, term.epoch, within_s=_RELEASE_S)
        except (DatabaseError, asyncpg.PostgresError) as error:
            log.warning("lease.not_released", extra={"lease": self._name, "error": str(error)})

    async def _ask(self, name: str, *arguments: object, within_s: float) -> list[asyncpg.Record]:
        with translated():
            rows: list[asyncpg.Record] = await answered_within(
                within_s, self._pool.fetch(sql(name), *arguments)
            )
        return rows
