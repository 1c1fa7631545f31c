"""A host's views together: waiting for them, and how far they are behind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from uuid import UUID

import asyncpg
import pytest

from app.db.pool import open_pool
from app.store.event_log import EventLog
from domain.errors import Unavailable
from projections.catalog import PROJECTIONS, UnknownProjection, named
from projections.projector import Pace
from projections.read.runs import list_runs
from projections.read.statistics import read_statistics
from projections.read.tools import list_tool_calls
from projections.rebuild import rebuild
from projections.runs import Runs
from projections.views import Lag, ProjectionBehind, Views
from tests.projections.writing import WHOLE_RUN, poison, until, write

ALL = tuple(projection.name for projection in PROJECTIONS)


async def test_who_waits_for_a_view_reads_what_was_written(
    pool: asyncpg.Pool, log: EventLog, quick: Pace
) -> None:
    views = Views(pool, log, pace=quick)
    async with running(views):
        end = await write(log, *WHOLE_RUN)
        for name in ALL:
            await views.wait_for(name, end, timeout_s=10)
        assert [run.status for run in (await list_runs(pool, "acme")).runs] == ["Completed"]
        assert (await read_statistics(pool, "acme")).by_agent[0].completed == 1
        assert [call.output for call in (await list_tool_calls(pool, "acme")).tool_calls] == ["shipped"]


async def test_a_bell_wakes_the_views_before_their_poll(pool: asyncpg.Pool, log: EventLog) -> None:
    async with running(Views(pool, log, pace=Pace(poll_s=3600.0))):
        for number in (1, 2):
            await write(log, *WHOLE_RUN, run_id=UUID(int=number))
            await until(partial(has_runs, pool, number))


async def test_one_host_waits_for_what_another_folds(pool: asyncpg.Pool, log: EventLog, quick: Pace) -> None:
    here, there = Views(pool, log, pace=quick), Views(pool, log, pace=quick)
    end = await write(log, *WHOLE_RUN)
    async with running(there):
        await here.wait_for("runs", end, timeout_s=10)


async def test_who_waits_too_long_is_told(pool: asyncpg.Pool, log: EventLog, quick: Pace) -> None:
    end = await write(log, *WHOLE_RUN)
    with pytest.raises(ProjectionBehind, match=f"has not come to position {end}"):
        await Views(pool, log, pace=quick).wait_for("runs", end, timeout_s=0.05)


async def test_an_unknown_name_is_answered_with_those_there_are(pool: asyncpg.Pool, log: EventLog) -> None:
    with pytest.raises(UnknownProjection, match="no projection 'run'; there are: runs, statistics, tools"):
        named("run")
    with pytest.raises(UnknownProjection):
        await Views(pool, log).wait_for("run", 1, timeout_s=1)


async def test_lag_is_the_distance_to_the_end_of_the_log_and_the_age_of_the_first_event_not_folded(
    pool: asyncpg.Pool, log: EventLog, quick: Pace
) -> None:
    views = Views(pool, log, pace=quick)
    assert await views.lags() == dict.fromkeys(ALL, Lag(events=0, seconds=0.0))
    end = await write(log, *WHOLE_RUN)
    lags = await views.lags()
    assert {name: lag.events for name, lag in lags.items()} == dict.fromkeys(ALL, end)
    assert all(0 < lag.seconds < 60 for lag in lags.values())
    async with running(views):
        for name in ALL:
            await views.wait_for(name, end, timeout_s=10)
    assert await views.lags() == dict.fromkeys(ALL, Lag(events=0, seconds=0.0))


async def test_a_view_that_has_stopped_says_so_and_its_lag_shows_it(
    pool: asyncpg.Pool, log: EventLog, quick: Pace
) -> None:
    views = Views(pool, log, pace=quick)
    assert views.failing() == dict.fromkeys(ALL, False)
    bad = await poison(pool)
    await write(log, *WHOLE_RUN)
    async with running(views):
        await until(lambda: all_fail(views))
        lags = await views.lags()
    assert {lag.events for lag in lags.values()} == {bad + len(WHOLE_RUN)}


async def test_views_of_a_store_that_is_away_are_unavailable(database: str, log: EventLog) -> None:
    pool = await open_pool(database, min_size=1)
    await pool.close()
    views = Views(pool, log)
    with pytest.raises(Unavailable, match="pool is closed"):
        await views.lags()
    with pytest.raises(Unavailable, match="pool is closed"):
        await views.wait_for("runs", 1, timeout_s=1)
    with pytest.raises(Unavailable, match="pool is closed"):
        await list_runs(pool, "acme")


async def test_everything_works_without_prepared_statements(
    database: str, log: EventLog, quick: Pace
) -> None:
    """As behind a pooler in transaction mode, where none outlives its transaction."""
    separator = "&" if "?" in database else "?"
    async with await open_pool(f"{database}{separator}pgbouncer=true", min_size=1) as pool:
        views = Views(pool, log, pace=quick)
        async with running(views):
            end = await write(log, *WHOLE_RUN)
            await views.wait_for("runs", end, timeout_s=10)
            await views.wait_for("statistics", end, timeout_s=10)
        done = await rebuild(Runs(), pool, log)
        assert done.events == len(WHOLE_RUN)
        assert len((await list_runs(pool, "acme", with_total=True)).runs) == 1
        assert (await read_statistics(pool, "acme")).by_agent[0].completed == 1
        assert set((await views.lags()).keys()) == set(ALL)


@asynccontextmanager
async def running(views: Views) -> AsyncIterator[None]:
    """The host's loops, until the block ends."""
    task = asyncio.create_task(views.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def has_runs(pool: asyncpg.Pool, count: int) -> bool:
    found: int = await pool.fetchval("SELECT count(*) FROM runs")
    return found == count


async def all_fail(views: Views) -> bool:
    return all(views.failing().values())
