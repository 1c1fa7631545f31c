"""Claim, fold, advance, commit: once each, on one host at a time, and never past what cannot be folded."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import get_args
from uuid import UUID

import asyncpg
import pytest

from app.db import pool as pools
from app.db.errors import StoreUnavailable
from app.db.pool import connect
from app.store.event_log import EventLog
from app.store.mapper import EventMapper
from domain.codec import Codec
from domain.events import AnyEvent, Event
from projections.base import Connection, Fact
from projections.positions import claim, position_of
from projections.projector import Pace, Progress, Projector
from projections.runs import Runs
from projections.statistics import Statistics
from tests.domain.facts import OPENED
from tests.projections.writing import WHOLE_RUN, Interfering, insert, poison, reached, until, write


async def test_a_page_is_folded_and_the_position_moves_with_it(pool: asyncpg.Pool, log: EventLog) -> None:
    end = await write(log, *WHOLE_RUN)
    projector = Projector(Runs(), pool, log)
    assert await projector.fold_page() is Progress.LAST_PAGE
    assert await position_of(pool, "runs") == end
    assert await pool.fetchval("SELECT status FROM runs") == "Completed"
    assert await projector.fold_page() is Progress.NOTHING_NEW


async def test_a_crash_between_fold_and_commit_folds_once(pool: asyncpg.Pool, log: EventLog) -> None:
    """EVENT-6: the position is remembered in the same transaction as the rows."""

    class Crashing(Statistics):
        async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
            await super().apply(conn, page)
            await conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    await write(log, *WHOLE_RUN)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await Projector(Crashing(), pool, log).fold_page()
    assert await position_of(pool, "statistics") == 0
    assert await Projector(Statistics(), pool, log).fold_page() is Progress.LAST_PAGE
    assert await pool.fetchval("SELECT sum(calls) FROM statistics_calls") == 2


async def test_a_dead_hosts_claim_is_taken_over_at_once(pool: asyncpg.Pool, log: EventLog) -> None:
    """EVENT-6: one host at a time works on a projection; the next takes over when its connection is gone."""
    working, pids = asyncio.Event(), list[int]()

    class Endless(Runs):
        async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
            await super().apply(conn, page)
            pids.append(await conn.fetchval("SELECT pg_backend_pid()"))
            working.set()
            await conn.execute("SELECT pg_sleep(60)")

    end = await write(log, *WHOLE_RUN)
    first, second = Projector(Endless(), pool, log), Projector(Runs(), pool, log)
    async with asyncio.TaskGroup() as tasks:
        crash = tasks.create_task(ends_with_a_lost_connection(first))
        await working.wait()
        assert await second.fold_page() is Progress.TAKEN
        assert await position_of(pool, "runs") == 0
        await pool.execute("SELECT pg_terminate_backend($1, 10000)", pids[0])
        assert await second.fold_page() is Progress.LAST_PAGE
        await crash
    assert await position_of(pool, "runs") == end
    assert await pool.fetchval("SELECT count(*) FROM runs") == 1


async def test_a_frozen_hosts_claim_is_taken_over_after_a_while(
    database: str, pool: asyncpg.Pool, log: EventLog, quick: Pace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVENT-6: it stands still in the middle of a page, alive, and no view of the others stands with it."""
    monkeypatch.setattr(pools, "_STILL_S", 0.2)
    await write(log, *WHOLE_RUN)
    await Projector(Runs(), pool, log).fold_page()
    end = await write(log, *OPENED, run_id=UUID(int=2))
    frozen = await connect(database)
    try:
        await frozen.execute("BEGIN")
        assert await claim(frozen, "runs")
        async with running(Projector(Runs(), pool, log, quick)):
            await until(lambda: reached(pool, end))
    finally:
        frozen.terminate()


async def test_running_projectors_outlive_the_loss_of_every_connection(
    pool: asyncpg.Pool, log: EventLog, quick: Pace
) -> None:
    projector = Projector(Runs(), pool, log, quick)
    async with running(projector):
        before = await write(log, *OPENED)
        await until(lambda: reached(pool, before))
        await terminate_everybody_else(pool)
        after = await write(log, *WHOLE_RUN[2:], after=2)
        await until(lambda: reached(pool, after))
    assert await pool.fetchval("SELECT events FROM runs") == len(WHOLE_RUN)


async def test_of_two_running_hosts_each_event_is_folded_by_one(
    pool: asyncpg.Pool, log: EventLog, quick: Pace
) -> None:
    """EVENT-6: one at a time."""
    async with (
        running(Projector(Statistics(), pool, log, quick)),
        running(Projector(Statistics(), pool, log, quick)),
    ):
        for number in range(1, 21):
            end = await write(log, *WHOLE_RUN, run_id=UUID(int=number))
        await until(lambda: reached(pool, end, "statistics"))
    assert await pool.fetchval("SELECT sum(completed) FROM statistics_agents") == 20
    assert await pool.fetchval("SELECT sum(calls) FROM statistics_calls") == 40


async def test_nothing_is_folded_past_a_slow_append(database: str, pool: asyncpg.Pool, log: EventLog) -> None:
    """EVENT-5 as a view sees it: drawn first, committed last."""
    slow = await asyncpg.connect(database)
    projector = Projector(Runs(), pool, log)
    try:
        transaction = slow.transaction()
        await transaction.start()
        await insert(slow, UUID(int=1), *map(Codec().encode, OPENED))
        end = await write(log, *OPENED, run_id=UUID(int=2))
        assert await projector.fold_page() is Progress.UNSETTLED
        assert await position_of(pool, "runs") == 0
        await transaction.commit()
    finally:
        await slow.close()
    assert await projector.fold_page() is Progress.LAST_PAGE
    assert await position_of(pool, "runs") == end
    assert await pool.fetchval("SELECT count(*) FROM runs") == 2


async def test_an_event_that_cannot_be_read_stops_the_projection_right_before_it(
    pool: asyncpg.Pool, log: EventLog, quick: Pace, caplog: pytest.LogCaptureFixture
) -> None:
    """It never skips: what comes after the event is not folded, whatever was in one page with it."""
    good = await write(log, *OPENED)
    bad = await poison(pool)
    await write(log, *OPENED, run_id=UUID(int=2))
    tried_in_vain = asyncio.Event()

    async def count(page: int) -> None:
        if page == 20:
            tried_in_vain.set()

    projector = Projector(Runs(), pool, Interfering(log, count), quick)
    with caplog.at_level(logging.INFO, "projections"):
        async with running(projector):
            await until(lambda: reached(pool, good))
            await tried_in_vain.wait()
            assert projector.failing
    assert await position_of(pool, "runs") == good == bad - 1
    assert await pool.fetchval("SELECT count(*) FROM runs") == 1
    assert [record.message for record in caplog.records] == ["projection cannot fold"]


async def test_a_host_of_a_newer_build_folds_what_this_one_cannot(
    database: str, pool: asyncpg.Pool, log: EventLog, quick: Pace
) -> None:
    class RunPaused(Event, frozen=True, kw_only=True, tag="run.paused.v9"):
        pass

    codec = Codec((*get_args(AnyEvent), RunPaused))
    newer = EventLog(pool, partial(connect, database), EventMapper(codec))
    await write(log, *OPENED)
    await poison(pool)
    end = await write(log, *WHOLE_RUN, run_id=UUID(int=2))
    async with running(Projector(Runs(), pool, log, quick)):
        await until(lambda: reached(pool, 2))
        async with running(Projector(Runs(), pool, newer, quick)):
            await until(lambda: reached(pool, end))
    assert await pool.fetchval("SELECT count(*) FROM runs") == 2


async def test_a_statement_that_fails_is_tried_again_and_folds_once(
    pool: asyncpg.Pool, log: EventLog, quick: Pace, caplog: pytest.LogCaptureFixture
) -> None:
    class Stumbling(Statistics):
        stumbles = 3

        async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
            await super().apply(conn, page)
            if self.stumbles:
                self.stumbles -= 1
                await conn.execute("SELECT 1/0")

    projector = Projector(Stumbling(), pool, log, quick)
    with caplog.at_level(logging.INFO, "projections"):
        async with running(projector):
            end = await write(log, *WHOLE_RUN)
            await until(lambda: reached(pool, end, "statistics"))
            await write(log, *OPENED, run_id=UUID(int=2))
            await until(lambda: recovered(projector))
    assert await pool.fetchval("SELECT sum(calls) FROM statistics_calls") == 2
    assert [record.message for record in caplog.records] == ["projection cannot fold", "projection goes on"]


async def test_a_store_that_is_away_is_tried_until_it_is_back(
    pool: asyncpg.Pool, log: EventLog, quick: Pace, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(page: int) -> None:
        if page <= 5:
            raise StoreUnavailable("connection refused")

    end = await write(log, *WHOLE_RUN)
    projector = Projector(Runs(), pool, Interfering(log, away), quick)
    async with running(projector):
        await until(lambda: reached(pool, end))
        assert not projector.failing, "no event is to blame"
    assert [record.message for record in caplog.records] == ["outage.began", "outage.ended"]
    assert not any(record.exc_info for record in caplog.records)


async def test_a_position_row_that_somebody_deleted_is_opened_again(
    pool: asyncpg.Pool, log: EventLog
) -> None:
    """Without rows there is nothing to fold twice: a view and its position are dropped together."""
    await write(log, *OPENED)
    projector = Projector(Runs(), pool, log)
    await projector.fold_page()
    await pool.execute("DELETE FROM notification_tracking WHERE application_name = 'runs'")
    await pool.execute("DELETE FROM runs")
    assert await projector.fold_page() is Progress.TAKEN
    assert await projector.fold_page() is Progress.LAST_PAGE
    assert await pool.fetchval("SELECT count(*) FROM runs") == 1


@asynccontextmanager
async def running(projector: Projector) -> AsyncIterator[None]:
    """The projector's loop, until the block ends."""
    task = asyncio.create_task(projector.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def recovered(projector: Projector) -> bool:
    return not projector.failing


async def ends_with_a_lost_connection(projector: Projector) -> None:
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        await projector.fold_page()


async def terminate_everybody_else(pool: asyncpg.Pool) -> None:
    await pool.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
