"""Cancelling a run that lives on another host."""

import asyncio
from contextlib import AsyncExitStack
from uuid import uuid4

import asyncpg
import pytest

from app.main import Host
from app.supervision.run_service import OwnerGone, RunNotHere
from domain import events as e
from domain.ids import DEFAULT_TENANT, RunId
from tests.hosts import OpenHost, follow, only, scripted, start

AGENT = '[agents.a]\nprovider = "script"\nmodel = "m"\n'
STALLS = scripted('[providers.script.models.m.default]\ntext = "one two three"\nstall_after = 2\n', AGENT)


async def live_run(host: Host) -> RunId:
    run_id = await start(host, "a", streaming=True)
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


async def test_word_for_a_run_that_has_just_ended_does_not_stay(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """CANCEL-2"""
    host = await host_of(STALLS)
    leave = (
        "INSERT INTO cancel_requests (run_id, host_id, reason, requested_at) VALUES ($1, $2, '', now() - $3)"
    )
    for age in ("0 s", "2 minutes"):
        await pool.execute(leave.replace("$3", f"interval '{age}'"), uuid4(), host.bench.host)
    async with asyncio.timeout(10):
        while await pool.fetchval("SELECT count(*) FROM cancel_requests") > 1:
            await asyncio.sleep(0.01)
