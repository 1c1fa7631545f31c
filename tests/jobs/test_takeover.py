"""Workers that die, lose their leases, or come back too late."""

import asyncio
import signal
import time
from pathlib import Path

import asyncpg
import pytest

from app.main import Host
from app.supervision.run_service import RunService
from domain.events import JobAttemptsExhausted, ModelCallStarted, RunFailed, RunStarted
from domain.ids import RunId
from domain.run import Run, RunStatus
from projections.read.jobs import list_jobs
from tests.hosts import OpenHost, follow, kinds, only, scripted
from tests.jobs.process import working
from tests.jobs.working import Gate, events, queued, run_out, settings, shown, until_row, within
from tests.store.proxy import proxied
from tracon import tool

HANGING = scripted(
    "[providers.script.models.silent]\ndefault = { silent = true }",
    '[agents.hanging]\nprovider = "script"\nmodel = "silent"',
)
BEGUN = ["RunCreated", "RunStarted", "ModelCallStarted"]
IN_TOOL = [*BEGUN, "ModelReplied", "ToolInvoking"]


async def owned_by_a_ghost(pool: asyncpg.Pool, attempts: int = 1) -> None:
    """As if a worker had leased every job and died before it began one."""
    await pool.execute(
        "UPDATE job_queue"
        " SET owner = 'ghost', term = $1, attempts = $1::bigint, leased_until = clock_timestamp()",
        attempts,
    )


async def status_of_job(host: Host, pool: asyncpg.Pool) -> tuple[RunStatus, str | None]:
    await shown(host)
    [job] = (await list_jobs(pool, "default")).jobs
    return job.status, job.error


async def test_a_job_whose_worker_died_before_it_began_the_run_is_begun_by_another(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """JOB-1: nothing was done, so that was no attempt."""
    api = await host_of(settings(), worker=False)
    run_id = await queued(api)
    await shown(api)
    await owned_by_a_ghost(pool)
    await host_of(settings())
    assert kinds(await follow(api, run_id))[-1] == "RunCompleted"


async def test_a_job_that_brings_down_every_worker_before_it_begins_is_given_up(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """JOB-1, RECON-2: and its run is closed with it, since it never wrote a heartbeat."""
    api = await host_of(settings(), worker=False)
    run_id = await queued(api)
    await shown(api)
    await owned_by_a_ghost(pool, attempts=3)
    await host_of(settings())
    recorded = await follow(api, run_id)
    assert kinds(recorded) == ["RunCreated", "JobAttemptsExhausted", "RunFailed"]
    assert [failed.error_type for failed in only(recorded, RunFailed)] == ["interrupted"]


async def killed_in_the_middle(
    api: Host, pool: asyncpg.Pool, folder: Path, dsn: str, max_attempts: int
) -> RunId:
    """A run whose worker was killed (-9) during its model call, and the time of its lease is over."""
    run_id = await queued(api, "hanging", max_attempts=max_attempts)
    with working(folder, dsn, HANGING) as process:
        await follow(api, run_id, until=ModelCallStarted)
        process.kill()
        assert await asyncio.to_thread(process.wait, 10) == -signal.SIGKILL
    await run_out(pool)
    return run_id


async def test_a_run_whose_worker_is_gone_is_not_begun_again_and_its_job_is_out_of_attempts(
    host_of: OpenHost, pool: asyncpg.Pool, tmp_path: Path, database: str
) -> None:
    """JOB-1: what closes the run then is reconciliation."""
    api = await host_of(HANGING, worker=False)
    run_id = await killed_in_the_middle(api, pool, tmp_path, database, max_attempts=1)
    await host_of(HANGING)
    recorded = await follow(api, run_id, until=JobAttemptsExhausted)
    assert kinds(recorded) == [*BEGUN, "JobAttemptsExhausted"]
    assert only(recorded, JobAttemptsExhausted) == [JobAttemptsExhausted(attempts=1)]
    assert await status_of_job(api, pool) == (RunStatus.FAILED, "tracon.job.attempts-exhausted")
    assert await pool.fetchval("SELECT count(*) FROM job_queue") == 0


async def test_a_run_whose_worker_is_gone_is_closed_as_interrupted_by_the_next_attempt(
    host_of: OpenHost, pool: asyncpg.Pool, tmp_path: Path, database: str
) -> None:
    """JOB-1: offered again; but a run cannot begin twice, and what it was at is unknown."""
    api = await host_of(HANGING, worker=False)
    run_id = await killed_in_the_middle(api, pool, tmp_path, database, max_attempts=2)
    await host_of(HANGING)
    recorded = await follow(api, run_id)
    assert kinds(recorded) == [*BEGUN, "RunFailed"]
    [failed] = only(recorded, RunFailed)
    assert (failed.error_type, failed.error_class) == ("interrupted", "Infrastructure")
    assert await status_of_job(api, pool) == (RunStatus.FAILED, "interrupted")


async def test_a_cancel_that_a_worker_did_not_live_to_read_is_carried_out_by_the_next_one(
    host_of: OpenHost, pool: asyncpg.Pool, tmp_path: Path, database: str
) -> None:
    """CANCEL-1: it was accepted, so the run is not interrupted but cancelled."""
    api = await host_of(HANGING, worker=False)
    run_id = await queued(api, "hanging", max_attempts=2)
    with working(tmp_path, database, HANGING) as process:
        await follow(api, run_id, until=ModelCallStarted)
        process.send_signal(signal.SIGSTOP)
        await api.services.runs.cancel("default", run_id, "not needed")
        process.kill()
        assert await asyncio.to_thread(process.wait, 10) == -signal.SIGKILL
    await run_out(pool)
    await host_of(HANGING)
    recorded = await follow(api, run_id)
    assert kinds(recorded) == [*BEGUN, "RunCancelRequested", "RunCancelled"]
    assert await status_of_job(api, pool) == (RunStatus.CANCELLED, None)


async def test_a_worker_that_loses_a_lease_stops_the_run_at_once(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """JOB-1, EVENT-3: it has no further effect, and leaves the stream to whoever has the lease now."""
    gate = Gate()
    host = await host_of(settings(gated=True), tools=(gate.tool,))
    run_id = await queued(host, "gated")
    async with within():
        await gate.reached.wait()
    await pool.execute("UPDATE job_queue SET owner = 'other', term = term + 1")
    assert host.leasing is not None
    host.leasing.keeper.hurry()
    async with within():
        await gate.stopped.wait()
        while host.roster.find(run_id):
            await asyncio.sleep(0.005)
    assert kinds(await events(host, run_id)) == IN_TOOL
    assert await pool.fetchval("SELECT owner FROM job_queue") == "other"


async def test_a_worker_that_cannot_renew_stops_its_runs_before_the_lease_runs_out(
    host_of: OpenHost, pool: asyncpg.Pool, database: str, tmp_path: Path
) -> None:
    """JOB-1: trust runs from when renewal was asked for, and ends before the lease does."""
    gate = Gate()
    async with proxied(tmp_path, database) as proxy:
        host = await host_of(settings(gated=True, lease_duration="3s"), tools=(gate.tool,), dsn=proxy.dsn)
        await queued(host, "gated")
        async with within():
            await gate.reached.wait()
        proxy.hold()
        async with within():
            await gate.stopped.wait()
        left = await pool.fetchval("SELECT leased_until > clock_timestamp() FROM job_queue")
        proxy.let_go()
    assert left


async def test_a_body_that_blocks_the_event_loop_costs_no_lease(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """JOB-1: leases are renewed from a thread of their own, so the run is executed once."""
    calls = []

    @tool(name="gate", effect="read")
    async def gate() -> str:
        """Keep the whole event loop busy for longer than a lease lasts."""
        calls.append(1)
        time.sleep(3.3)  # noqa: ASYNC251 - that is the point
        return "open"

    host = await host_of(settings(gated=True, lease_duration="3s"), tools=(gate,))
    run_id = await queued(host, "gated")
    assert kinds(await follow(host, run_id))[-1] == "RunCompleted"
    assert len(calls) == 1
    assert host.services.metrics.registry.get_sample_value("tracon_job_leases_lost_total") == 0


async def test_a_host_that_stops_lets_its_jobs_go_at_once(
    host_of: OpenHost, pool: asyncpg.Pool, tmp_path: Path, database: str
) -> None:
    """DRAIN-1: others need not wait for leases that nobody keeps."""
    api = await host_of(HANGING, worker=False)
    run_id = await queued(api, "hanging")
    with working(tmp_path, database, HANGING) as process:
        await follow(api, run_id, until=ModelCallStarted)
        process.terminate()
        assert await asyncio.to_thread(process.wait, 20) == 0
    [row] = await pool.fetch("SELECT leased_until <= clock_timestamp() AS free, attempts FROM job_queue")
    assert (row["free"], row["attempts"]) == (True, 1)


async def test_an_owner_that_comes_back_too_late_is_fenced(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """EVENT-3: its lease was somebody else's, who has closed the run."""
    gate = Gate()
    host = await host_of(settings(gated=True), tools=(gate.tool,))
    run_id = await queued(host, "gated", max_attempts=2)
    async with within():
        await gate.reached.wait()
    await run_out(pool)
    await host_of(settings(gated=True), tools=(gate.tool,))
    recorded = await follow(host, run_id)
    gate.let_go.set()
    async with within():
        while host.roster.find(run_id):
            await asyncio.sleep(0.005)
    assert kinds(recorded) == [*IN_TOOL, "RunFailed"]
    assert await events(host, run_id) == recorded
    assert gate.calls == 1


async def test_a_crash_in_beginning_a_run_leaves_the_job_to_its_lease(
    host_of: OpenHost, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker goes on with other jobs, and this one is offered again."""
    take, crashes = RunService.take, [ZeroDivisionError("a defect")]

    async def crashing(self: RunService, run_id: RunId, known: Run | None = None) -> asyncio.Task[None]:
        if crashes:
            raise crashes.pop()
        return await take(self, run_id, known)

    monkeypatch.setattr(RunService, "take", crashing)
    host = await host_of(settings(poll_interval="20ms"))
    first = await queued(host)
    await until_row(pool, "SELECT FROM job_queue WHERE attempts = 1")
    async with within():
        while "job.crashed" not in [record.message for record in caplog.records]:
            await asyncio.sleep(0.005)
    assert kinds(await follow(host, await queued(host)))[-1] == "RunCompleted"
    assert not only(await events(host, first), RunStarted)
    await run_out(pool)
    assert kinds(await follow(host, first))[-1] == "RunCompleted"
