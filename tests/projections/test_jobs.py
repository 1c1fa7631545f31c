"""The `jobs` view and the work list beside it: rows from events, claims from nobody but workers."""

import asyncio
from uuid import UUID

import asyncpg
import msgspec
import pytest
from hypothesis import given

from app.store.event_log import EventLog
from domain.events import (
    Event,
    JobAttemptsExhausted,
    RunAwaitingApproval,
    RunCancelled,
    RunCompleted,
    RunCreated,
    RunFailed,
)
from domain.failure import ErrorClass
from domain.queueing import QueueSpec
from projections.base import Fact
from projections.job_record import JOB_EVENTS, advance
from projections.jobs import CHANNEL, Jobs, record_from
from projections.projector import Progress, Projector
from projections.rebuild import rebuild
from tests.domain.facts import CREATED, STARTED
from tests.projections.histories import histories
from tests.projections.story import minute, stream
from tests.projections.tables import folded, rows_of
from tests.projections.test_folds import on_one_database, streams, undone
from tests.projections.writing import Interfering, write

FAILED = RunFailed(error="gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)


def queued(**queue: object) -> RunCreated:
    return msgspec.structs.replace(CREATED, queue=msgspec.structs.replace(QueueSpec(), **queue))


async def follow(pool: asyncpg.Pool, log: EventLog) -> None:
    projector = Projector(Jobs(), pool, log)
    while await projector.fold_page() is not Progress.NOTHING_NEW:
        pass


async def lease(pool: asyncpg.Pool, number: int = 1) -> None:
    await pool.execute(
        "UPDATE job_queue SET attempts = 1, term = 1, owner = 'host-1',"
        " leased_until = clock_timestamp() + '1 minute' WHERE run_id = $1",
        UUID(int=number),
    )


async def claims(pool: asyncpg.Pool) -> list[tuple[object, ...]]:
    rows = await pool.fetch("SELECT run_id, attempts, term, owner, leased_until FROM job_queue ORDER BY 1")
    return [tuple(row) for row in rows]


@on_one_database
@given(histories())
async def test_a_row_of_jobs_equals_the_fold_of_its_runs_stream(
    pool: asyncpg.Pool, facts: list[Fact]
) -> None:
    expected = []
    for events in streams(facts):
        record = None
        for recorded in events:
            if type(recorded.event) in JOB_EVENTS:
                record = advance(record, recorded)
        expected += [record] if record else []
    async with undone(pool) as conn:
        await folded(conn, Jobs(), facts)
        rows = await conn.fetch("SELECT * FROM jobs ORDER BY run_id")
        waiting = await conn.fetchval("SELECT array_agg(run_id ORDER BY run_id) FROM job_queue")
    assert [record_from(row) for row in rows] == expected
    assert (waiting or []) == [record.id for record in expected if record.ended_at is None]


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ((), ("Queued", None, None, None)),
        ((STARTED,), ("Running", None, minute(2), None)),
        ((STARTED, RunCompleted(answer="x")), ("Completed", None, minute(2), minute(3))),
        ((STARTED, FAILED), ("Failed", "orphaned", minute(2), minute(3))),
        ((STARTED, RunAwaitingApproval(calls=())), ("AwaitingApproval", None, minute(2), minute(3))),
        ((RunCancelled(),), ("Cancelled", None, None, minute(2))),
    ],
)
async def test_a_job_is_as_far_as_its_run(
    pool: asyncpg.Pool, facts: tuple[Event, ...], told: tuple[object, ...]
) -> None:
    """JOB-1: jobs are made, and marked as done, from events."""
    async with undone(pool) as conn:
        await folded(conn, Jobs(), stream(queued(), *facts))
        [row] = await conn.fetch("SELECT status, error, started_at, ended_at FROM jobs")
        open_jobs = await conn.fetchval("SELECT count(*) FROM job_queue")
    assert tuple(row) == told
    assert open_jobs == (0 if told[3] else 1)


async def test_a_job_that_is_given_up_has_failed_whatever_becomes_of_its_run(pool: asyncpg.Pool) -> None:
    """JOB-1: out of attempts."""
    facts = stream(queued(), STARTED, JobAttemptsExhausted(attempts=1), FAILED)
    async with undone(pool) as conn:
        await folded(conn, Jobs(), facts[:3], facts[3:])
        [row] = await conn.fetch("SELECT status, error, ended_at FROM jobs")
        assert tuple(row) == ("Failed", "tracon.job.attempts-exhausted", minute(3))
        assert await conn.fetchval("SELECT count(*) FROM job_queue") == 0


async def test_a_run_that_was_begun_at_once_is_no_job(pool: asyncpg.Pool) -> None:
    async with undone(pool) as conn:
        tables = await folded(conn, Jobs(), stream(CREATED, STARTED, FAILED))
    assert tables == {"jobs": [], "job_queue": []}


async def test_folding_on_leaves_a_claim_alone(pool: asyncpg.Pool, log: EventLog) -> None:
    """JOB-1: nobody but workers writes a claim."""
    await write(log, queued(), run_id=UUID(int=1))
    await follow(pool, log)
    await lease(pool)
    before = await claims(pool)
    await write(log, STARTED, run_id=UUID(int=1), after=1)
    await follow(pool, log)
    assert await claims(pool) == before


async def test_a_rebuild_keeps_every_claim(pool: asyncpg.Pool, log: EventLog) -> None:
    """EVENT-6, JOB-1: a view may be rebuilt at any time, and no job is lost or worked on twice by it."""
    for number in (1, 2, 3):
        await write(log, queued(), run_id=UUID(int=number))
    await write(log, STARTED, RunCompleted(answer="x"), run_id=UUID(int=3), after=1)
    await follow(pool, log)
    await lease(pool)
    async with pool.acquire() as conn:
        before = await rows_of(conn, "jobs")
        await rebuild(Jobs(), pool, log, page=2)
        assert await rows_of(conn, "jobs") == before
    assert [row[1:4] for row in await claims(pool)] == [(1, 1, "host-1"), (0, 0, None)]


async def test_a_lease_can_be_renewed_while_the_view_is_rebuilt(pool: asyncpg.Pool, log: EventLog) -> None:
    """A rebuild takes as long as it takes; a lease must not run out over it."""
    for number in (1, 2):
        await write(log, queued(), run_id=UUID(int=number))
    await follow(pool, log)
    await lease(pool)
    renewed = list[object]()

    async def renew(_: int) -> None:
        async with asyncio.timeout(5):
            renewed.append(
                await pool.fetchval(
                    "UPDATE job_queue SET leased_until = leased_until + '1 min' WHERE term = 1 RETURNING term"
                )
            )

    await rebuild(Jobs(), pool, Interfering(log, renew), page=1)
    assert renewed == [1, 1]


async def test_a_job_that_ended_behind_a_rebuild_is_removed_by_the_next_page(
    pool: asyncpg.Pool, log: EventLog
) -> None:
    await write(log, queued())
    await follow(pool, log)

    async def end(page: int) -> None:
        if page == 1:
            await write(log, RunCancelled(), after=1)
            await pool.execute("DELETE FROM job_queue")  # as a worker does that finds it has ended

    await rebuild(Jobs(), pool, Interfering(log, end), page=1)
    assert await pool.fetchval("SELECT count(*) FROM job_queue") == 1
    await follow(pool, log)
    assert await pool.fetchval("SELECT count(*) FROM job_queue") == 0
    assert await pool.fetchval("SELECT status FROM jobs") == "Cancelled"


async def test_workers_are_told_when_there_is_more_work_and_only_then(
    database: str, pool: asyncpg.Pool, log: EventLog
) -> None:
    """JOB-1: one notification for a page, sent when its rows can be seen."""
    heard = asyncio.Queue[str]()

    def notified(_connection: object, _pid: int, _channel: str, payload: object) -> None:
        heard.put_nowait(str(payload))

    listening = await asyncpg.connect(database)
    await listening.add_listener(CHANNEL, notified)
    try:
        for number in (1, 2, 3):
            await write(log, queued(), run_id=UUID(int=number))
        await follow(pool, log)
        await write(log, STARTED, run_id=UUID(int=1), after=1)
        await write(log, CREATED, run_id=UUID(int=4))
        await follow(pool, log)
        await pool.execute(f"NOTIFY {CHANNEL}, 'the end'")
        async with asyncio.timeout(5):
            assert [await heard.get(), await heard.get()] == ["", "the end"]
    finally:
        await listening.close()
