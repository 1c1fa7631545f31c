"""Writing to a log what views are to be made of, and waiting for what comes of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from uuid import UUID, uuid4

import asyncpg

from app.store.event_log import Change, EventLog
from domain.events import Event, RunCompleted
from domain.ids import StreamId, Version
from projections.base import Connection, Fact, LogReader, Page
from projections.positions import position_of
from tests.domain.facts import OPENED, asked_for, call, calling, invoking, replied, returned, says
from tests.projections.story import RUN

CALL = call("c1")
WHOLE_RUN: tuple[Event, ...] = (
    *OPENED,
    *asked_for(CALL),
    invoking(CALL),
    returned(CALL, "shipped"),
    calling(2),
    replied(2, says("It ships.")),
    RunCompleted(answer="It ships."),
)


async def write(
    log: EventLog, *events: Event, run_id: UUID = RUN, after: int = 0, tenant: str = "acme"
) -> int:
    """Append to one stream and return the position of the last event."""
    change = Change(stream_id=StreamId(run_id), expected=Version(after), tenant=tenant, events=events)
    recorded: Sequence[Fact] = await log.append(change, patience_s=10.0)
    return recorded[-1].position


async def poison(pool: asyncpg.Pool) -> int:
    """An event that a newer build wrote. Returns its position."""
    return await insert(pool, uuid4(), ("run.paused.v9", b"{}"))


async def insert(
    conn: Connection | asyncpg.Pool, stream_id: UUID, *sealed: tuple[str, bytes], tenant: str = "acme"
) -> int:
    """A new stream with these topics and payloads. Returns the position of the last event."""
    topics, states = zip(*sealed, strict=True)
    count = len(sealed)
    positions: list[int] = await conn.fetchval(
        "SELECT positions FROM tracon_append(false, gen_random_uuid(), '{}', '{}', $1, $2, $3, $4, $5)",
        [stream_id] * count,
        list(range(1, count + 1)),
        list(topics),
        list(states),
        [tenant] * count,
    )
    return positions[-1]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Look until it holds; fail after ten seconds."""
    async with asyncio.timeout(10):
        while not await holds():
            await asyncio.sleep(0.005)


async def reached(pool: asyncpg.Pool, position: int, name: str = "runs") -> bool:
    """Whether the view has come that far, if the database says anything."""
    with suppress(asyncpg.PostgresError, asyncpg.InterfaceError):
        return await position_of(pool, name) >= position
    return False


class Interfering:
    """A log reader that calls `before_page` with the number of each page, from 1, before it reads it."""

    def __init__(self, reader: LogReader, before_page: Callable[[int], Awaitable[None]]) -> None:
        self._reader = reader
        self._before_page = before_page
        self.pages = 0
        self.end_position = reader.end_position
        self.bell = reader.bell

    async def read_page(self, after: int, limit: int) -> Page:
        self.pages += 1
        await self._before_page(self.pages)
        return await self._reader.read_page(after, limit)
