"""Noting when keys were used."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from uuid import UUID

from app.db.errors import StoreUnavailable
from app.keys.last_used import LastUsed

ONE, OTHER = UUID(int=1), UUID(int=2)


class Notes:
    def __init__(self) -> None:
        self.written: list[set[UUID]] = []
        self.news = asyncio.Event()
        self.away = False

    async def write(self, key_ids: Iterable[UUID]) -> None:
        self.written.append(set(key_ids))
        self.news.set()
        if self.away:
            raise StoreUnavailable("away")

    async def next(self) -> None:
        await asyncio.wait_for(self.news.wait(), 10)
        self.news.clear()


@asynccontextmanager
async def noting(notes: Notes, pace_s: float) -> AsyncIterator[LastUsed]:
    last_used = LastUsed(notes.write, pace_s)
    task = asyncio.create_task(last_used.run())
    yield last_used
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_uses_are_written_together_and_not_again_before_the_pace_allows() -> None:
    """HTTP-4: a thousand requests are one statement."""
    notes = Notes()
    async with noting(notes, pace_s=3600) as last_used:
        for _ in range(1000):
            last_used.note(ONE)
        last_used.note(OTHER)
        await notes.next()
        last_used.note(ONE)
        await asyncio.sleep(0)
    assert notes.written == [{ONE, OTHER}]


async def test_an_outage_costs_a_note_and_nothing_more() -> None:
    notes = Notes()
    notes.away = True
    async with noting(notes, pace_s=0.001) as last_used:
        last_used.note(ONE)
        await notes.next()
        notes.away = False
        last_used.note(OTHER)
        await notes.next()
    assert notes.written == [{ONE}, {OTHER}]
