"""Reading the log: one stream, or everything in the order in which it may be followed."""

from collections.abc import Mapping, Sequence

import asyncpg

from app.db.pool import translated
from app.store.change import Page
from app.store.holes import Holes
from app.store.mapper import EventMapper
from app.store.sql import sql
from domain.events import Event, Recorded
from domain.ids import StreamId

PAGE_BYTES = 1 << 20
"""Payload after which a page ends, however few events it has. Every reader holds a page of its own."""


class Reader:
    """Every method raises StoreUnavailable, and UnreadableEvent or UnknownTopic for what it must not skip."""

    def __init__(self, pool: asyncpg.Pool, mapper: EventMapper, page_bytes: int = PAGE_BYTES) -> None:
        self._pool = pool
        self._recorded = mapper.recorded
        self._page_bytes = page_bytes
        self._holes = Holes(pool)

    async def read_stream(
        self, stream_id: StreamId, after: int = 0, limit: int | None = None
    ) -> list[Recorded[Event]]:
        """A stream's events after this sequence, oldest first. An unknown stream is empty."""
        with translated():
            rows = await self._pool.fetch(sql("read_stream"), stream_id, after, limit)
        return [self._recorded(row) for row in rows]

    async def read_stream_page(self, stream_id: StreamId, after: int, limit: int) -> Page:
        """The next part of a stream, for who takes it in parts; nothing only at its end."""
        with translated():
            rows = await self._pool.fetch(sql("read_stream_page"), stream_id, after, limit, self._page_bytes)
        return Page(events=[self._recorded(row) for row in rows], pending=self._may_go_on(rows, limit))

    async def read_last(self, stream_id: StreamId) -> Recorded[Event] | None:
        """A stream's last event; None for an unknown stream."""
        with translated():
            row = await self._pool.fetchrow(sql("read_last"), stream_id)
        return None if row is None else self._recorded(row)

    async def read_streams(self, wanted: Mapping[StreamId, int], limit: int | None) -> list[Recorded[Event]]:
        """What each of these streams has after the given sequence, at most `limit` of each."""
        with translated():
            rows = await self._pool.fetch(sql("read_streams"), list(wanted), list(wanted.values()), limit)
        return [self._recorded(row) for row in rows]

    async def read_page(self, after: int, limit: int) -> Page:
        """The log after a position, never past one that may still be filled (EVENT-5)."""
        with translated():
            while True:
                settled = self._holes.settled  # before the query: what is settled now, it will see
                rows = await self._pool.fetch(sql("read_page"), after, limit, self._page_bytes)
                safe = _before_a_hole(rows, after, settled)
                if safe == len(rows):
                    break
                if safe or not await self._holes.settle(rows[0]["notification_id"] - 1):
                    return Page(events=[self._recorded(row) for row in rows[:safe]], pending=True)
        cut = len(rows) < limit and self._may_go_on(rows, limit)
        return Page(events=[self._recorded(row) for row in rows], pending=cut)

    async def end_position(self) -> int:
        """The highest visible position. Measure lag by it; start no reader there (see `holes`)."""
        with translated():
            position: int = await self._pool.fetchval(sql("end_position"))
        return position

    def _may_go_on(self, rows: Sequence[asyncpg.Record], limit: int) -> bool:
        return len(rows) >= limit or sum(len(row["state"]) for row in rows) >= self._page_bytes


def _before_a_hole(rows: Sequence[asyncpg.Record], after: int, settled: int) -> int:
    """How many of these rows come before the first hole that may still be filled."""
    last = after
    for number, row in enumerate(rows):
        position = row["notification_id"]
        if position != last + 1 and position - 1 > settled:
            return number
        last = position
    return len(rows)
