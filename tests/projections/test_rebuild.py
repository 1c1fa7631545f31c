"""A view folded from nothing, whole or not at all."""

from uuid import UUID

import asyncpg
import pytest

from app.store.event_log import EventLog
from domain.codec import UnknownTopic
from projections.base import Projection
from projections.catalog import PROJECTIONS
from projections.positions import position_of
from projections.projector import Progress, Projector
from projections.rebuild import RebuildProgress, rebuild
from projections.runs import Runs
from tests.projections.tables import rows_of
from tests.projections.writing import WHOLE_RUN, Interfering, poison, write


@pytest.mark.parametrize("projection", PROJECTIONS, ids=lambda projection: projection.name)
async def test_the_rows_after_a_rebuild_are_the_rows_before(
    pool: asyncpg.Pool, log: EventLog, projection: Projection
) -> None:
    """EVENT-6: dropped and rebuilt to the same rows."""
    end = await a_few_runs(log)
    await follow(pool, log, projection)
    before = await rows_of_view(pool, projection)
    done = await rebuild(projection, pool, log, page=4)
    assert done == RebuildProgress(events=3 * len(WHOLE_RUN), position=end, end=end)
    assert await rows_of_view(pool, projection) == before
    assert await position_of(pool, projection.name) == end


async def test_rows_that_no_event_explains_are_gone_after_it(pool: asyncpg.Pool, log: EventLog) -> None:
    await a_few_runs(log)
    await follow(pool, log, Runs())
    before = await rows_of_view(pool, Runs())
    await pool.execute("UPDATE runs SET run_id = gen_random_uuid(), status = 'Wrong'")
    await rebuild(Runs(), pool, log)
    assert await rows_of_view(pool, Runs()) == before


async def test_a_view_that_never_was_can_be_built(pool: asyncpg.Pool, log: EventLog) -> None:
    end = await a_few_runs(log)
    await rebuild(Runs(), pool, log)
    assert await pool.fetchval("SELECT count(*) FROM runs") == 3
    assert await position_of(pool, "runs") == end


async def test_readers_see_the_old_rows_and_no_host_folds_until_it_is_done(
    pool: asyncpg.Pool, log: EventLog
) -> None:
    await a_few_runs(log)
    await follow(pool, log, Runs())
    await pool.execute("UPDATE runs SET status = 'Old'")
    other = Projector(Runs(), pool, log)
    seen = list[object]()

    async def look(_: int) -> None:
        seen.append(await pool.fetchval("SELECT array_agg(DISTINCT status) FROM runs"))
        seen.append(await other.fold_page())

    await rebuild(Runs(), pool, Interfering(log, look), page=20)
    assert seen == [["Old"], Progress.TAKEN] * 2
    assert await pool.fetchval("SELECT array_agg(DISTINCT status) FROM runs") == ["Completed"]


async def test_a_rebuild_whose_connection_is_lost_has_changed_nothing(
    pool: asyncpg.Pool, log: EventLog
) -> None:
    end = await a_few_runs(log)
    await follow(pool, log, Runs())
    before = await rows_of_view(pool, Runs())

    async def pull_the_plug(page: int) -> None:
        if page == 2:
            await pool.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND state = 'idle in transaction'"
            )

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await rebuild(Runs(), pool, Interfering(log, pull_the_plug), page=10)
    assert await rows_of_view(pool, Runs()) == before
    assert await position_of(pool, "runs") == end


async def test_an_event_that_cannot_be_read_leaves_the_old_rows(pool: asyncpg.Pool, log: EventLog) -> None:
    end = await a_few_runs(log)
    await follow(pool, log, Runs())
    before = await rows_of_view(pool, Runs())
    await poison(pool)
    with pytest.raises(UnknownTopic):
        await rebuild(Runs(), pool, log, page=10)
    assert await rows_of_view(pool, Runs()) == before
    assert await position_of(pool, "runs") == end


async def test_it_tells_how_far_it_is_page_by_page(pool: asyncpg.Pool, log: EventLog) -> None:
    end = await a_few_runs(log)
    told = list[RebuildProgress]()
    done = await rebuild(Runs(), pool, log, page=10, on_progress=told.append)
    assert [(progress.events, progress.end) for progress in told] == [(10, end), (20, end), (27, end)]
    assert told[-1] == done


async def test_what_is_written_meanwhile_is_folded_by_the_projector(
    pool: asyncpg.Pool, log: EventLog
) -> None:
    end = await a_few_runs(log)

    async def write_more(page: int) -> None:
        await write(log, *WHOLE_RUN, run_id=UUID(int=100 + page))

    done = await rebuild(Runs(), pool, Interfering(log, write_more), page=len(WHOLE_RUN))
    assert done.position == done.end == end
    await follow(pool, log, Runs())
    assert await pool.fetchval("SELECT count(*) FROM runs") == 6


async def a_few_runs(log: EventLog) -> int:
    """Three whole runs. Returns the end of the log."""
    for number in (1, 2, 3):
        end = await write(log, *WHOLE_RUN, run_id=UUID(int=number))
    return end


async def follow(pool: asyncpg.Pool, log: EventLog, projection: Projection) -> None:
    """Fold to the end of the log as a host does, in small pages."""
    projector = Projector(projection, pool, log)
    while await projector.fold_page() is not Progress.NOTHING_NEW:
        pass


async def rows_of_view(pool: asyncpg.Pool, projection: Projection) -> object:
    async with pool.acquire() as conn:
        return await rows_of(conn, projection.name)
