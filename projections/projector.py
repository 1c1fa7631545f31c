"""Keeping one view up to date: claim its position, fold the next page, advance, commit; for ever.

There is a projector for each view on every host. Whoever gets the position row works, for one page; a dead
host's claim ends with its connection. Rows and position commit together, so each event is folded once. A page
that cannot be folded is tried again and again, and nothing behind it is touched: a projection stops, it never
skips.
"""

import asyncio
import logging
import random
from contextlib import suppress
from enum import Enum, auto

import asyncpg
import msgspec

from domain.errors import Unavailable
from projections.base import LogReader, Projection
from projections.positions import advance, claim, open_position, position_of
from projections.unavailable import heed_cancellation, told_as_unavailable

log = logging.getLogger(__name__)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How a projector spends its time."""

    page: int = 500
    """Events to a transaction, at most."""
    breath_s: float = 0.05
    """Rest after a short page, so that a busy log comes in few pages rather than one by one."""
    gather_s: float = 0.02
    """How long news may gather before it is looked at, unless somebody waits for it."""
    poll_s: float = 1.0
    """How long news may go unnoticed when no bell rings."""
    standby_s: float = 0.2
    """How often to see whether the host that is working is gone."""
    longest_pause_s: float = 5.0
    """Between attempts at what keeps failing."""


class Progress(Enum):
    """What came of one attempt."""

    FULL_PAGE = auto()
    LAST_PAGE = auto()
    UNSETTLED = auto()  # the log goes on once an open append has ended
    NOTHING_NEW = auto()
    TAKEN = auto()  # another host is at work


_UNSETTLED_S = 0.02
_FIRST_PAUSE_S = 0.05


class Projector:
    def __init__(
        self, projection: Projection, pool: asyncpg.Pool, reader: LogReader, pace: Pace | None = None
    ) -> None:
        self._projection = projection
        self._pool = pool
        self._reader = reader
        self._pace = pace or Pace()
        self._page = self._pace.page
        self._opened = False
        self._failures = 0
        self._told: set[str] = set()
        self._waits = False
        self._due = asyncio.Event()
        self._urgent = asyncio.Event()
        self._moved = asyncio.Event()

    @property
    def name(self) -> str:
        return self._projection.name

    @property
    def failing(self) -> bool:
        """Whether it cannot go on, as far as this host has tried."""
        return bool(self._told)

    def nudge(self) -> None:
        """There may be news."""
        self._due.set()

    async def run(self) -> None:
        """Work until cancelled. A failure is logged once per kind, here, and answered by trying again.

        A store that is away is no failure: it is told once, and once when it is back.
        """
        while True:
            self._due.clear()
            self._urgent.clear()
            try:
                with told_as_unavailable():
                    progress = await self.fold_page()
            except Unavailable as error:
                await self._wait_for_the_store(error)
            except Exception as error:  # noqa: BLE001 - the one place that answers failures of a projection
                heed_cancellation(error)
                await self._pause_after(error)
            else:
                self._went_well(progress)
                await self._rest(progress)

    async def fold_page(self) -> Progress:
        """One attempt: a page is folded and committed whole, or not at all."""
        if not self._opened:
            await open_position(self._pool, self.name)
        async with self._pool.acquire() as conn, conn.transaction():
            position = await claim(conn, self.name)
            self._opened = position is not None  # or the row is gone, which looks the same
            if position is None:
                return Progress.TAKEN
            page = await self._reader.read_page(position, self._page)
            if page.events:
                await self._projection.apply(conn, page.events)
                await advance(conn, self.name, page.events[-1].position)
        if page.events:
            self._tell_waiters()
        if page.pending:
            return Progress.UNSETTLED
        if not page.events:
            return Progress.NOTHING_NEW
        return Progress.FULL_PAGE if len(page.events) >= self._page else Progress.LAST_PAGE

    async def reach(self, position: int) -> None:
        """Return once everything up to `position` is folded and committed, by this host or another."""
        pause_s = 0.005
        while True:
            moved = self._moved
            if await position_of(self._pool, self.name) >= position:
                return
            self._urgent.set()
            self._due.set()
            await _either(moved, pause_s)
            pause_s = min(pause_s * 2, 0.1)

    def _tell_waiters(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def _rest(self, progress: Progress) -> None:
        match progress:
            case Progress.FULL_PAGE:
                return
            case Progress.UNSETTLED:
                await asyncio.sleep(_UNSETTLED_S)
            case Progress.TAKEN:
                await asyncio.sleep(_jittered(self._pace.standby_s))
            case Progress.LAST_PAGE:
                await _either(self._urgent, self._pace.breath_s)
                await self._news()
            case Progress.NOTHING_NEW:
                await self._news()

    async def _news(self) -> None:
        await _either(self._due, self._pace.poll_s)
        if self._pace.gather_s:
            await _either(self._urgent, self._pace.gather_s)

    def _went_well(self, progress: Progress) -> None:
        self._failures = 0
        if self._waits:
            log.warning("outage.ended", extra={"duty": f"projection {self.name}"})
            self._waits = False
        if progress is Progress.TAKEN:
            return
        past_trouble = self._page == self._pace.page or progress is not Progress.FULL_PAGE
        if self._told and past_trouble:
            log.info("projection goes on", extra={"projection": self.name})
            self._told.clear()
        self._page = min(self._page * 2, self._pace.page)

    async def _pause_after(self, error: Exception) -> None:
        # From here on page by page of a single event, then two, four, ...: so the position comes to stand
        # right before the event that cannot be folded, whatever page it was met in.
        self._page = 1
        kind = type(error).__qualname__
        if kind not in self._told:
            self._told.add(kind)
            log.error("projection cannot fold", extra={"projection": self.name}, exc_info=error)
        await self._pause()

    async def _wait_for_the_store(self, error: Unavailable) -> None:
        """No event is to blame, so the next page is as large as this one was."""
        if not self._waits:
            log.warning("outage.began", extra={"duty": f"projection {self.name}", "error": str(error)})
            self._waits = True
        await self._pause()

    async def _pause(self) -> None:
        pause_s = min(_FIRST_PAUSE_S * 2**self._failures, self._pace.longest_pause_s)
        self._failures = min(self._failures + 1, 16)
        await asyncio.sleep(_jittered(pause_s))


async def _either(event: asyncio.Event, at_most_s: float) -> None:
    """Wait for the event, or about that long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_jittered(at_most_s)):
            await event.wait()


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.75, 1.25)  # noqa: S311 - spreads hosts out, keeps no secret
