"""Cancelling a run that lives on another host."""

import asyncio
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from app.main import Host
from app.supervision.cancels import CHANNEL, Cancels
from app.supervision.run_service import OwnerGone, RunNotHere
from app.supervision.sql import sql
from app.supervision.supervisor import CRASHED
from domain import events as e
from domain.errors import Conflict
from domain.ids import DEFAULT_TENANT, RunId
from domain.refusals import RunAlreadyEnded
from tests.hosts import OpenHost, follow, only, scripted, start
from tests.jobs.working import Gate
from tests.store.proxy import proxied

AGENTS = """
[agents.a]
provider = "script"
model = "m"
[agents.echo]
provider = "script"
model = "echo"
"""
STALLS = scripted(
    '[providers.script.models.m.default]\ntext = "one two three"\nstall_after = 2\n'
    "[providers.script.models.echo]\n",
    AGENTS,
)
GATED = """
[providers.script.models.gated]
supports_tools = true
default = [{ tool_call = { name = "gate" } }, { text = "through" }]
[agents.gated]
provider = "script"
model = "gated"
tools = ["gate"]
"""
RECONCILED = "[run_reconciliation]\nenabled = true\n"


async def live_run(host: Host, session_id: str | None = None) -> RunId:
    run_id = await start(host, "a", streaming=True, session_id=session_id)
    await follow(host, run_id, e.TextDelta)
    return run_id


async def test_any_host_reaches_a_run_of_any_other(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """CANCEL-2: through the database; the reason goes with it, and nothing is left behind."""
    owner, asked = [await host_of(STALLS) for _ in range(2)]
    run_id = await live_run(owner)
    await asked.services.runs.cancel(DEFAULT_TENANT, run_id, "changed my mind")
    [cancelled] = only(await follow(asked, run_id), e.RunCancelled)
    assert cancelled.reason == "changed my mind"
    async with asyncio.timeout(10):
        while await pool.fetchval("SELECT count(*) FROM cancel_requests"):
            await asyncio.sleep(0.01)


async def test_a_run_that_waits_in_another_host_is_cancelled_in_its_stream(host_of: OpenHost) -> None:
    """CANCEL-1: whether its host is known, or alive, or not; who has it in hand finds it ended."""
    owner, asked = [await host_of(STALLS) for _ in range(2)]
    await live_run(owner, session_id="s")
    waiting = await start(owner, "a", session_id="s")
    await asked.services.runs.cancel(DEFAULT_TENANT, waiting, "changed my mind")
    assert only(await follow(asked, waiting), e.RunCancelled) == [e.RunCancelled(reason="changed my mind")]
    async with asyncio.timeout(10):
        while owner.roster.find(waiting) is not None:
            await asyncio.sleep(0.01)


async def test_without_notifications_it_takes_no_longer_than_a_poll(host_of: OpenHost, database: str) -> None:
    """CANCEL-2: a notification is a hint."""
    owner = await host_of(STALLS, dsn=f"{database}&pgbouncer=true")
    asked = await host_of(STALLS)
    run_id = await live_run(owner)
    await asked.services.runs.cancel(DEFAULT_TENANT, run_id)
    assert only(await follow(asked, run_id), e.RunCancelled)


async def test_in_the_scope_of_the_process_other_hosts_are_not_reached(host_of: OpenHost) -> None:
    """CANCEL-2"""
    owner = await host_of(STALLS)
    asked = await host_of(STALLS + '[cancellation]\nscope = "process"\n')
    run_id = await live_run(owner)
    with pytest.raises(RunNotHere):
        await asked.services.runs.cancel(DEFAULT_TENANT, run_id)


async def test_who_asks_for_the_run_of_a_host_that_is_gone_is_told_so(host_of: OpenHost) -> None:
    """CANCEL-2: nobody will ever hear of it, so it is not accepted."""
    asked = await host_of(STALLS)
    async with AsyncExitStack() as stack:
        owner = await host_of(STALLS, within=stack)
        run_id = await live_run(owner)
    with pytest.raises(OwnerGone, match=owner.bench.host):
        await asked.services.runs.cancel(DEFAULT_TENANT, run_id)


async def test_a_host_that_was_not_heard_of_is_gone(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """CANCEL-2: by the database's clock."""
    asked, owner = [await host_of(STALLS) for _ in range(2)]
    run_id = await live_run(owner)
    age = "UPDATE hosts SET seen_at = seen_at - interval '{}' WHERE host_id = $1"
    await pool.execute(age.format("4 minutes"), owner.bench.host)
    await asked.services.runs.cancel(DEFAULT_TENANT, run_id)
    await follow(asked, run_id)
    run_id = await live_run(owner)
    await pool.execute(age.format("2 minutes"), owner.bench.host)
    with pytest.raises(OwnerGone):
        await asked.services.runs.cancel(DEFAULT_TENANT, run_id)


LEAVE = "INSERT INTO cancel_requests (run_id, host_id, reason) VALUES ($1, $2, '')"


async def test_each_way_that_a_cancel_can_go_is_counted(host_of: OpenHost) -> None:
    """CANCEL-1, 2: the refusals apart from one another."""
    owner, asked = [await host_of(STALLS) for _ in range(2)]
    near = await host_of(STALLS + '[cancellation]\nscope = "process"\n')

    async def counted(host: Host, run_id: RunId, outcome: str) -> None:
        registry, labels = host.services.metrics.registry, {"outcome": outcome}
        before = registry.get_sample_value("tracon_cancels_total", labels) or 0.0
        with suppress(Conflict):
            await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        assert registry.get_sample_value("tracon_cancels_total", labels) == before + 1

    first, second = await live_run(owner, session_id="s"), await live_run(owner)
    await counted(asked, await start(owner, "a", session_id="s"), "queued")
    await counted(near, first, "not_here")
    await counted(owner, first, "here")
    await follow(owner, first)
    async with asyncio.timeout(10):
        while owner.roster.find(first) is not None:
            await asyncio.sleep(0.01)
    await counted(owner, first, "already_ended")
    await counted(asked, second, "elsewhere")
    await follow(asked, second)
    async with AsyncExitStack() as stack:
        doomed = await host_of(STALLS, within=stack)
        left = await live_run(doomed)
    await counted(asked, left, "owner_gone")


async def test_word_stays_until_the_run_has_ended(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """CANCEL-1: its owner may die before what it has read is on record, so reading takes nothing away."""
    host, owner = [await host_of(STALLS) for _ in range(2)]
    ended = await start(host, "echo")
    await follow(host, ended)
    open_run = await live_run(owner)
    await owner.roster.stop()
    for run_id in (ended, open_run):
        await pool.execute(LEAVE, run_id, host.bench.host)
    async with asyncio.timeout(10):
        while await pool.fetchval("SELECT count(*) FROM cancel_requests") > 1:
            await asyncio.sleep(0.01)
    assert await pool.fetchval("SELECT run_id FROM cancel_requests") == open_run


async def test_a_cancel_on_the_runs_own_host_outlives_it_too(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """CANCEL-1: what was accepted is in the database before that is told."""
    gate = Gate()
    host = await host_of(STALLS + GATED, tools=(gate.tool,))
    run_id = await start(host, "gated")
    await gate.reached.wait()
    await host.services.runs.cancel(DEFAULT_TENANT, run_id, "enough")
    [word] = await pool.fetch("SELECT run_id, host_id, reason FROM cancel_requests")
    assert tuple(word) == (run_id, host.bench.host, "enough")


async def test_asking_again_is_asking_for_the_same(host_of: OpenHost) -> None:
    """CANCEL-1"""
    owner, asked = [await host_of(STALLS) for _ in range(2)]
    run_id = await live_run(owner)
    for host, reason in ((asked, "first"), (asked, "second"), (owner, "third")):
        with suppress(RunAlreadyEnded):
            await host.services.runs.cancel(DEFAULT_TENANT, run_id, reason)
    recorded = await follow(asked, run_id)
    [requested], [cancelled] = only(recorded, e.RunCancelRequested), only(recorded, e.RunCancelled)
    assert requested.reason == cancelled.reason


async def test_word_that_comes_while_a_run_is_being_closed_is_not_accepted(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """CANCEL-1, 2: whoever closes it has read what was left for it by then."""
    owner, asked = [await host_of(RECONCILED + STALLS) for _ in range(2)]
    run_id = await live_run(owner)
    claim = (
        "INSERT INTO run_heartbeats (run_id, host_id, seen_at, claimed_by, claimed_at)"
        " VALUES ($1, $2, '-infinity', 'somebody', clock_timestamp())"
        " ON CONFLICT (run_id) DO UPDATE SET claimed_by = 'somebody', claimed_at = clock_timestamp()"
    )
    await pool.execute(claim, run_id, owner.bench.host)
    with pytest.raises(OwnerGone):
        await asked.services.runs.cancel(DEFAULT_TENANT, run_id)
    assert await pool.fetchval("SELECT count(*) FROM cancel_requests") == 0


async def test_word_that_came_after_the_end_is_taken_back(
    host_of: OpenHost, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CANCEL-1: it was not accepted, so nobody goes by it later."""
    owner, asked = [await host_of(STALLS) for _ in range(2)]
    run_id = await live_run(owner)
    await owner.roster.stop()
    leave = Cancels.send

    async def too_late(self: Cancels, run_id: RunId, to: str, reason: str) -> None:
        await asked.services.runs.close(run_id, CRASHED)
        await leave(self, run_id, to, reason)

    monkeypatch.setattr(Cancels, "send", too_late)
    with pytest.raises(RunAlreadyEnded):
        await asked.services.runs.cancel(DEFAULT_TENANT, run_id)
    assert await pool.fetchval("SELECT count(*) FROM cancel_requests") == 0


async def test_a_cancel_during_an_outage_of_the_owner_ends_its_run_as_cancelled(
    host_of: OpenHost, database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """CANCEL-1, EVENT-8: the owner cannot hear of it, and closes the run when its store is back."""
    gate = Gate()
    async with proxied(tmp_path, database) as proxy:
        impatient = STALLS + GATED + '[store]\noutage_patience = "100ms"\n'
        owner = await host_of(impatient, tools=(gate.tool,), dsn=proxy.dsn)
        asked = await host_of(STALLS)
        run_id = await start(owner, "gated")
        await gate.reached.wait()
        await proxy.refuse()
        await asked.services.runs.cancel(DEFAULT_TENANT, run_id, "not needed")
        gate.let_go.set()
        async with asyncio.timeout(20):
            while "run.store_lost" not in [record.message for record in caplog.records]:
                await asyncio.sleep(0.01)
        await proxy.accept()
        [cancelled] = only(await follow(asked, run_id), e.RunCancelled)
    assert cancelled.reason == "not needed"


async def test_a_claim_and_a_word_take_turns(pool: asyncpg.Pool) -> None:
    """CANCEL-1: of two that come at the same moment the second one sees what the first has done."""
    run_id = uuid4()
    await pool.execute(
        "INSERT INTO run_heartbeats VALUES ($1, 'owner', clock_timestamp() - interval '1 hour', NULL, NULL)",
        run_id,
    )
    claim = (sql("claim_silent"), "judge", 300.0, 60.0, datetime.now(UTC), 100)
    async with pool.acquire() as conn:
        async with conn.transaction():
            await conn.fetch(sql("request_cancel"), run_id, "owner", "", CHANNEL)
            assert await pool.fetch(*claim) == []
        async with conn.transaction():
            assert len(await conn.fetch(*claim)) == 1
            late = asyncio.create_task(pool.fetch(sql("request_cancel"), run_id, "owner", "", CHANNEL))
            async with asyncio.timeout(10):
                while not await pool.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                    await asyncio.sleep(0.01)
        assert await late == []
