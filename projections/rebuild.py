"""Folding a view from nothing."""

from collections.abc import Callable

import asyncpg
import msgspec

from projections.base import LogReader, Projection
from projections.positions import advance, hold, open_position

PAGE = 2000


class RebuildProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a rebuild is; `end` is where the log ended when it began."""

    events: int
    position: int
    end: int


async def rebuild(
    projection: Projection,
    pool: asyncpg.Pool,
    reader: LogReader,
    *,
    page: int = PAGE,
    on_progress: Callable[[RebuildProgress], None] = lambda _: None,
) -> RebuildProgress:
    """Drop a view's rows and fold them again from the log, to the end it had when this began.

    It is one transaction, which holds the position row: no host folds into the view meanwhile, readers see
    the old rows until the new ones are complete, and a rebuild that is interrupted has changed nothing.
    Building in a second table and swapping would spare the database a long transaction, for which its vacuum
    waits; but it would give every view two names, and a crash would leave half of one to be found and cleared
    away. What the log got meanwhile is the projectors' to fold.
    """
    await open_position(pool, projection.name)
    async with pool.acquire() as conn, conn.transaction():
        await hold(conn, projection.name)
        end = await reader.end_position()
        await projection.reset(conn)
        done = RebuildProgress(events=0, position=0, end=end)
        while done.position < end:
            facts = (await reader.read_page(done.position, page)).events
            if not facts:
                break
            await projection.apply(conn, facts)
            done = RebuildProgress(events=done.events + len(facts), position=facts[-1].position, end=end)
            on_progress(done)
        await advance(conn, projection.name, done.position)
    return done
