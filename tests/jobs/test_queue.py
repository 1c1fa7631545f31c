"""The work list: who gets which job, once, and what a term that has passed may still write."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg
import msgspec
import pytest

from app.jobs.lease import Held, LeasedJob
from app.jobs.queue import JobQueue
from app.jobs.sql import sql
from domain.ids import RunId

HOUR_S = 3600.0


@pytest.fixture
def queue(pool: asyncpg.Pool) -> JobQueue:
    return JobQueue(pool, "host-1", ("support",))


@pytest.fixture
def other(pool: asyncpg.Pool) -> JobQueue:
    return JobQueue(pool, "host-2", ("support",))


async def waiting(
    pool: asyncpg.Pool, *numbers: int, lane: str = "default", priority: int = 0, agent: str = "support"
) -> None:
    """Jobs of these numbers, the lower ones older."""
    for number in numbers:
        await pool.execute(
            "INSERT INTO job_queue (run_id, lane, priority, position, agent, max_attempts, queued_at)"
            " VALUES ($1, $2, $3, $4, $5, 1, clock_timestamp())",
            UUID(int=number),
            lane,
            priority,
            number,
            agent,
        )


async def run_out(pool: asyncpg.Pool) -> None:
    """As if the time of every lease were over."""
    await pool.execute("UPDATE job_queue SET leased_until = clock_timestamp() WHERE owner IS NOT NULL")


def numbers(jobs: Sequence[LeasedJob]) -> list[int]:
    return sorted(job.run_id.int for job in jobs)


async def test_a_job_is_leased_with_a_term_and_an_end(queue: JobQueue, pool: asyncpg.Pool) -> None:
    """JOB-1"""
    await waiting(pool, 1)
    [job] = await queue.lease({"default": 5}, 5, HOUR_S)
    assert msgspec.structs.replace(job, waited_s=0.0) == LeasedJob(
        run_id=RunId(UUID(int=1)), lane="default", term=1, attempts=1, max_attempts=1, waited_s=0.0
    )
    [row] = await pool.fetch(
        "SELECT owner, extract(epoch FROM leased_until - clock_timestamp()) AS left_s FROM job_queue"
    )
    assert row["owner"] == "host-1"
    assert HOUR_S - 60 < row["left_s"] <= HOUR_S


async def test_a_leased_job_is_nobody_elses_until_its_lease_has_run_out(
    queue: JobQueue, other: JobQueue, pool: asyncpg.Pool
) -> None:
    """JOB-1: then it is offered again, in a new term."""
    await waiting(pool, 1)
    await queue.lease({"default": 5}, 5, HOUR_S)
    assert await other.lease({"default": 5}, 5, HOUR_S) == []
    await run_out(pool)
    [again] = await other.lease({"default": 5}, 5, HOUR_S)
    assert (again.term, again.attempts) == (2, 2)


async def test_the_higher_priority_goes_first_then_the_older(queue: JobQueue, pool: asyncpg.Pool) -> None:
    """JOB-1"""
    await waiting(pool, 1, 2)
    await waiting(pool, 3, 4, priority=5)
    order = [numbers(await queue.lease({"default": 1}, 1, HOUR_S)) for _ in range(4)]
    assert order == [[3], [4], [1], [2]]


async def test_lanes_are_served_in_their_order_and_each_to_its_limit(
    queue: JobQueue, pool: asyncpg.Pool
) -> None:
    """JOB-1: the limit of all lanes together falls on the last ones."""
    await waiting(pool, 1, 2, 3)
    await waiting(pool, 4, 5, 6, lane="urgent", priority=-9)
    assert numbers(await queue.lease({"urgent": 2, "default": 5}, 4, HOUR_S)) == [1, 2, 4, 5]
    assert numbers(await queue.lease({"default": 5}, 5, HOUR_S)) == [3]


async def test_a_job_waits_for_a_host_that_knows_its_agent(queue: JobQueue, pool: asyncpg.Pool) -> None:
    """While a new build with a new agent is rolled out, the old one leaves its runs alone."""
    await waiting(pool, 1, agent="novel")
    assert await queue.lease({"default": 5}, 5, HOUR_S) == []
    newer = JobQueue(pool, "host-2", ("support", "novel"))
    assert numbers(await newer.lease({"default": 5}, 5, HOUR_S)) == [1]


async def test_hosts_that_lease_at_the_same_moment_get_different_jobs(
    queue: JobQueue, other: JobQueue, pool: asyncpg.Pool
) -> None:
    """JOB-1"""
    await waiting(pool, *range(1, 61))
    batches = await asyncio.gather(
        *(one.lease({"default": 10}, 10, HOUR_S) for _ in range(4) for one in (queue, other))
    )
    leased = [job.run_id for batch in batches for job in batch]
    assert len(leased) == len(set(leased))
    rest = await queue.lease({"default": 60}, 60, HOUR_S)
    assert numbers(rest) == sorted(set(range(1, 61)) - {run_id.int for run_id in leased})


async def test_a_host_passes_by_what_another_is_leasing_instead_of_waiting_for_it(
    queue: JobQueue, pool: asyncpg.Pool
) -> None:
    await waiting(pool, 1, 2)
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM job_queue WHERE position = 1 FOR UPDATE")
        async with asyncio.timeout(5):
            assert numbers(await queue.lease({"default": 5}, 5, HOUR_S)) == [2]


async def test_a_term_that_has_passed_writes_nothing(
    queue: JobQueue, other: JobQueue, pool: asyncpg.Pool
) -> None:
    """JOB-1: whatever a host that was away believes, it names its term, and the database knows better."""
    await waiting(pool, 1)
    [old] = await queue.lease({"default": 1}, 1, HOUR_S)
    await run_out(pool)
    [new] = await other.lease({"default": 1}, 1, HOUR_S)
    before = await pool.fetch("SELECT * FROM job_queue")
    await queue.finish(old.run_id, old.term)
    await queue.let_go({old.run_id: Held(term=old.term, trusted_until=0.0)})
    assert await renewed(pool, old) == []
    assert await pool.fetch("SELECT * FROM job_queue") == before
    assert await renewed(pool, new) == [new.run_id]
    await other.finish(new.run_id, new.term)
    assert await pool.fetchval("SELECT count(*) FROM job_queue") == 0


async def renewed(pool: asyncpg.Pool, job: LeasedJob) -> list[UUID]:
    rows = await pool.fetch(sql("renew"), [job.run_id], [job.term], timedelta(hours=1))
    return [row["run_id"] for row in rows]


async def test_what_is_let_go_is_free_at_once_and_counts_only_if_it_had_begun(
    queue: JobQueue, other: JobQueue, pool: asyncpg.Pool
) -> None:
    await waiting(pool, 1, 2)
    jobs = await queue.lease({"default": 2}, 2, HOUR_S)
    await queue.let_go(
        {job.run_id: Held(term=job.term, trusted_until=0.0, begun=job.run_id.int == 1) for job in jobs}
    )
    again = await other.lease({"default": 2}, 2, HOUR_S)
    assert {job.run_id.int: job.attempts for job in again} == {1: 2, 2: 1}


async def test_a_lease_is_taken_from_the_order_without_sorting(pool: asyncpg.Pool) -> None:
    """However long the queue is, a lease looks at its head."""
    await pool.execute(
        "INSERT INTO job_queue (run_id, lane, priority, position, agent, max_attempts, queued_at)"
        " SELECT gen_random_uuid(), 'default', n % 3, n, 'support', 1, now() FROM generate_series(1, 20000) n"
    )
    await pool.execute("ANALYZE job_queue")
    statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {sql('lease')}"
    plan = await pool.fetchval(statement, ["default"], [10], 10, ["support"], "host-1", timedelta(hours=1))
    nodes = list(_nodes((msgspec.json.decode(plan) if isinstance(plan, str) else plan)[0]["Plan"]))
    scanned = [node for node in nodes if node.get("Index Name") == "job_queue_order"]
    assert [node["Actual Rows"] for node in scanned] == [10]
    assert "Seq Scan" not in [node["Node Type"] for node in nodes if node.get("Relation Name") == "job_queue"]


def _nodes(node: dict[str, object]) -> list[dict[str, object]]:
    children = node.get("Plans", [])
    assert isinstance(children, list)
    return [node, *(inner for child in children for inner in _nodes(child))]
