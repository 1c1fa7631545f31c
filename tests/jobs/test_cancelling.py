"""Cancelling a run that waits for a worker, also at the very moment when one takes it (CANCEL-1)."""

import asyncio

import asyncpg
import pytest

from app.main import Host
from domain.events import RunCancelled, RunStarted
from domain.ids import DEFAULT_TENANT, RunId
from domain.refusals import RunAlreadyEnded
from domain.run import RunStatus
from projections.read.jobs import list_jobs
from tests.hosts import OpenHost, follow, kinds, only
from tests.jobs.working import Gate, events, queued, settings, shown, within


async def cancel(host: Host, run_id: RunId) -> None:
    await host.services.runs.cancel(DEFAULT_TENANT, run_id, "not needed")


async def test_a_run_that_waits_is_cancelled_in_its_stream_and_its_job_is_gone(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """CANCEL-1"""
    host = await host_of(settings(), worker=False)
    run_id = await queued(host)
    await cancel(host, run_id)
    recorded = await events(host, run_id)
    assert kinds(recorded) == ["RunCreated", "RunCancelled"]
    assert only(recorded, RunCancelled) == [RunCancelled(reason="not needed")]
    await shown(host)
    [job] = (await list_jobs(pool, DEFAULT_TENANT)).jobs
    assert job.status is RunStatus.CANCELLED
    assert await pool.fetchval("SELECT count(*) FROM job_queue") == 0
    with pytest.raises(RunAlreadyEnded):
        await cancel(host, run_id)


async def test_a_run_that_was_cancelled_while_leased_is_not_begun(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """CANCEL-1: the run's stream decides. The worker that comes to begin it finds it over."""
    api = await host_of(settings(), worker=False)
    run_id = await queued(api)
    await shown(api)
    held = await pool.fetchrow("SELECT * FROM job_queue")
    await cancel(api, run_id)
    await shown(api)
    assert held is not None
    await pool.execute("INSERT INTO job_queue SELECT ($1::job_queue).*", held)  # the view has not told yet
    worker = await host_of(settings())
    async with within():
        while await pool.fetchval("SELECT count(*) FROM job_queue"):
            await asyncio.sleep(0.005)
    assert kinds(await events(worker, run_id)) == ["RunCreated", "RunCancelled"]


async def test_a_run_that_a_worker_has_begun_is_told_to_stop(host_of: OpenHost) -> None:
    """CANCEL-1, 2: on whichever host it is."""
    gate = Gate()
    api = await host_of(settings(gated=True), tools=(gate.tool,), worker=False)
    await host_of(settings(gated=True), tools=(gate.tool,))
    run_id = await queued(api, "gated")
    async with within():
        await gate.reached.wait()
    await cancel(api, run_id)
    assert kinds(await follow(api, run_id))[-1] == "RunCancelled"


async def test_of_a_cancel_and_a_worker_that_come_at_once_one_is_first_and_the_other_follows(
    host_of: OpenHost, database: str
) -> None:
    """CANCEL-1: appends are held back until both wait for the same place in the run's stream."""
    gate = Gate()
    api = await host_of(settings(gated=True), tools=(gate.tool,), worker=False)
    run_ids = [await queued(api, "gated") for _ in range(6)]
    await shown(api)
    conn = await asyncpg.connect(database)
    try:
        async with conn.transaction():
            await conn.execute("LOCK TABLE stored_events IN EXCLUSIVE MODE")
            worker = await host_of(settings(gated=True), tools=(gate.tool,))
            async with asyncio.timeout(10):
                while await conn.fetchval("SELECT count(*) FROM job_queue WHERE owner IS NULL"):
                    await asyncio.sleep(0.005)
            cancels = [asyncio.create_task(cancel(api, run_id)) for run_id in run_ids]
            async with asyncio.timeout(10):
                while await conn.fetchval(WAITING) < 2:
                    await asyncio.sleep(0.005)
    finally:
        await conn.close()
    async with within():
        await asyncio.gather(*cancels)
    for run_id in run_ids:
        recorded = await follow(worker, run_id)
        assert kinds(recorded)[-1] == "RunCancelled"
        begun = len(only(recorded, RunStarted))
        assert kinds(recorded)[: 1 + begun] == ["RunCreated", "RunStarted"][: 1 + begun]
        assert begun or kinds(recorded) == ["RunCreated", "RunCancelled"]


WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'stored_events'::regclass"
