"""Noting when keys were used: afterwards, all together, and at most once a minute."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

from app.outage import Outage
from domain.errors import Unavailable

log = logging.getLogger(__name__)

PACE_S = 60.0


class LastUsed:
    """A request only leaves its key's id here. One task writes; what it cannot write is no great loss."""

    def __init__(self, write: Callable[[Iterable[UUID]], Awaitable[None]], pace_s: float = PACE_S) -> None:
        self._write = write
        self._pace_s = pace_s
        self._used: set[UUID] = set()
        self._due = asyncio.Event()
        self._outage = Outage(log, "last use of keys")

    def note(self, key_id: UUID) -> None:
        """Never waits."""
        self._used.add(key_id)
        self._due.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            await self._write_all()
            await asyncio.sleep(self._pace_s)

    async def _write_all(self) -> None:
        used, self._used = self._used, set()
        try:
            await self._write(used)
        except Unavailable as error:
            self._outage.met(error)
        else:
            self._outage.over()
