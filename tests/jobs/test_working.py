"""Workers on whole hosts: jobs are begun, ended, kept, and left to others in order."""

import asyncio
from collections import Counter

import asyncpg

from domain.events import RunFailed, RunStarted
from domain.queueing import QueueSpec
from domain.run import RunStatus
from projections.read.jobs import list_jobs
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.jobs.working import Gate, events, queued, settings, shown, until_row


async def test_a_queued_run_is_begun_by_a_worker_and_its_job_is_done(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """JOB-1"""
    host = await host_of(settings())
    run_id = await queued(host)
    assert kinds(await follow(host, run_id)) == [
        *("RunCreated", "RunStarted", "ModelCallStarted", "ModelReplied", "RunCompleted")
    ]
    await shown(host)
    [job] = (await list_jobs(pool, "default")).jobs
    assert (job.id, job.status, job.lease) == (run_id, RunStatus.COMPLETED, None)
    assert await pool.fetchval("SELECT count(*) FROM job_queue") == 0


async def test_a_host_without_a_worker_leaves_the_run_queued(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    host = await host_of(settings(), worker=False)
    run_id = await queued(host)
    await shown(host)
    assert kinds(await events(host, run_id)) == ["RunCreated"]
    assert await pool.fetchval("SELECT owner FROM job_queue") is None


async def test_queued_runs_survive_a_restart(host_of: OpenHost) -> None:
    """JOB-1: nothing of a queue is in a process."""
    before = await host_of(settings(), worker=False)
    run_ids = [await queued(before) for _ in range(5)]
    after = await host_of(settings())
    for run_id in run_ids:
        assert kinds(await follow(after, run_id))[-1] == "RunCompleted"


async def test_two_hosts_begin_each_run_once_and_share_the_work(host_of: OpenHost) -> None:
    """JOB-1"""
    api = await host_of(settings(), worker=False)
    run_ids = [await queued(api) for _ in range(40)]
    await shown(api)
    workers = [await host_of(settings(max_concurrent=2)) for _ in range(2)]
    owners: Counter[str] = Counter()
    for run_id in run_ids:
        [started] = only(await follow(api, run_id), RunStarted)
        owners[started.host] += 1
    assert owners.keys() <= {worker.bench.host for worker in workers}
    assert owners.total() == 40


async def test_work_is_found_without_any_notification(host_of: OpenHost, database: str) -> None:
    """JOB-1: polling is a net. A pooler in transaction mode lets no LISTEN through."""
    host = await host_of(settings(poll_interval="20ms"), dsn=f"{database}&pgbouncer=true")
    assert not host.services.log.listening.is_set()
    assert kinds(await follow(host, await queued(host)))[-1] == "RunCompleted"


async def test_urgent_work_goes_first(host_of: OpenHost) -> None:
    """JOB-1: lanes in the order of the settings, then priority, then age."""
    lanes: dict[str, object] = {"urgent": {}, "bulk": {}}
    api = await host_of(settings(lanes=lanes), worker=False)
    order = [
        await queued(api, lane="bulk"),
        await queued(api),
        await queued(api, priority=7),
        await queued(api, lane="urgent"),
        await queued(api, lane="bulk", priority=1),
    ]
    await shown(api)
    await host_of(settings(lanes=lanes, max_concurrent=1))
    begun = {}
    for number, run_id in enumerate(order):
        begun[number] = (await follow(api, run_id, RunStarted))[-1].position
    assert sorted(begun, key=lambda number: begun[number]) == [3, 4, 0, 2, 1]


async def test_a_host_works_on_no_more_than_it_may(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """JOB-1"""
    gate = Gate()
    host = await host_of(settings(gated=True, max_concurrent=2), tools=(gate.tool,))
    run_ids = [await queued(host, "gated") for _ in range(5)]
    await until_row(pool, "SELECT FROM job_queue WHERE owner IS NOT NULL HAVING count(*) = 2")
    await shown(host)
    assert await pool.fetchval("SELECT count(*) FROM job_queue WHERE owner IS NOT NULL") == 2
    gate.let_go.set()
    for run_id in run_ids:
        assert kinds(await follow(host, run_id))[-1] == "RunCompleted"


async def test_a_host_that_drains_leases_nothing_new(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """DRAIN-1: what it has goes on, the rest waits for another host."""
    gate = Gate()
    draining = await host_of(settings(gated=True), tools=(gate.tool,))
    has = await queued(draining, "gated")
    async with asyncio.timeout(10):
        await gate.reached.wait()
    draining.drain.begin()
    api = await host_of(settings(gated=True), tools=(gate.tool,), worker=False)
    waits = await queued(api)
    await shown(api)
    await pool.execute("SELECT pg_notify('tracon_jobs', '')")
    gate.let_go.set()
    assert kinds(await follow(draining, has))[-1] == "RunCompleted"
    assert kinds(await events(api, waits)) == ["RunCreated"]
    await host_of(settings(gated=True), tools=(gate.tool,))
    assert kinds(await follow(api, waits))[-1] == "RunCompleted"


async def test_a_run_whose_agent_no_longer_takes_its_parameters_fails_and_says_why(
    host_of: OpenHost,
) -> None:
    """It cannot be begun by anybody, so it must not wait for ever."""
    models, agent = "[providers.script.models.echo]", '[agents.echo]\nprovider = "script"\nmodel = "echo"\n'
    before = await host_of(scripted(models, agent + 'parameters = { tone = "kind" }'), worker=False)
    run_id = await start(before, "echo", parameters={"tone": "rude"}, queue=QueueSpec())
    after = await host_of(scripted(models, agent))
    [failed] = only(await follow(after, run_id), RunFailed)
    assert (failed.error_type, failed.error_class) == ("bad_parameter", "Invalid")


async def test_a_job_of_an_agent_that_this_host_does_not_know_is_left_alone(host_of: OpenHost) -> None:
    models, agent = "[providers.script.models.echo]", 'provider = "script"\nmodel = "echo"\n'
    newer = await host_of(scripted(models, f"[agents.echo]\n{agent}[agents.novel]\n{agent}"), worker=False)
    novel, known = (
        await start(newer, "novel", queue=QueueSpec()),
        await start(newer, "echo", queue=QueueSpec()),
    )
    await host_of(scripted(models, f"[agents.echo]\n{agent}"))
    assert kinds(await follow(newer, known))[-1] == "RunCompleted"
    assert kinds(await events(newer, novel)) == ["RunCreated"]
    await host_of(scripted(models, f"[agents.novel]\n{agent}"))
    assert kinds(await follow(newer, novel))[-1] == "RunCompleted"
