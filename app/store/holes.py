"""Deciding when a missing position is missing for good.

A position is drawn before its transaction commits. So a position below a visible one may be missing because
its append is still under way, or because it was rolled back. Which of the two is settled by evidence, never
by time:

1. Every append takes the advisory lock before it draws a position, and gives it back after it has become
   visible.
2. Positions are drawn in ascending order. Whoever owes one below a visible position drew it earlier still,
   so it either is among the holders of the lock now, or has become visible (or been rolled back) by now.
3. So: note the highest visible position, then the holders. Once none of these holds the lock any more, a
   query that begins now sees everything up to that position that will ever be there.

Other transactions do not matter, however long they stay open.
"""

import asyncpg

from app.store.sql import sql


class _Watch:
    """Once none of `holders` holds the lock any more, every hole below `upper` is final."""

    def __init__(self, upper: int, holders: set[str]) -> None:
        self.upper = upper
        self.holders = holders


class Holes:
    """What one host knows about holes. Its readers share it: what is final is final for everybody."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._watch: _Watch | None = None
        self.settled = 0
        """A query that begins now sees everything up to here that will ever be there."""

    async def settle(self, hole: int) -> bool:
        """Whether the hole is final. If not, ask again within milliseconds."""
        watch = self._watch
        if watch is None:
            watch = self._watch = await self._begin()
        else:
            watch.holders &= await self._appenders()
        if not watch.holders:
            self.settled = max(self.settled, watch.upper)
            self._watch = None
        return hole <= self.settled

    async def _begin(self) -> _Watch:
        upper: int = await self._pool.fetchval(sql("end_position"))
        return _Watch(upper, await self._appenders())  # in this order: step 3 rests on it

    async def _appenders(self) -> set[str]:
        return {row["virtualtransaction"] for row in await self._pool.fetch(sql("appenders"))}
