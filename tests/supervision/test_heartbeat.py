"""Heartbeats as the database has them, and what must not and what must keep them away."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import asyncpg
import psycopg

from app.main import Host
from domain import events as e
from domain.ids import RunId
from tests.hosts import OpenHost, follow, scripted, start
from tests.http.client import eventually
from tests.store.proxy import proxied

AGENT = '[agents.a]\nprovider = "script"\nmodel = "m"\n'
STALLS = scripted('[providers.script.models.m.default]\ntext = "one two three"\nstall_after = 2\n', AGENT)
OFF = '[run_reconciliation]\nheartbeat_interval = "20ms"\norphan_threshold = "200ms"\n'
ON = OFF + 'enabled = true\nscan_interval = "1h"\n'
LONG_S = 10.0


async def live_run(host: Host) -> RunId:
    run_id = await start(host, "a", streaming=True)
    await follow(host, run_id, e.TextDelta)
    return run_id


@contextmanager
def asked_from_here(dsn: str) -> Iterator[Callable[[str], object]]:
    """Ask without letting the event loop run."""
    with psycopg.connect(dsn, autocommit=True) as connection:

        def ask(query: str) -> object:
            row = connection.execute(query).fetchone()
            return None if row is None else row[0]

        yield ask


def until(holds: Callable[[], bool]) -> None:
    """Wait for it, and let nothing else happen in this process's event loop."""
    ends_at = time.monotonic() + LONG_S
    while not holds():
        assert time.monotonic() < ends_at
        time.sleep(0.005)


async def test_a_live_run_is_vouched_for_until_it_has_ended(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """RECON-2: in bulk, whatever the runs are doing."""
    host = await host_of(ON + STALLS)
    runs = {await live_run(host), await live_run(host)}
    vouched = "SELECT run_id FROM run_heartbeats WHERE host_id = $1"
    async with asyncio.timeout(LONG_S):
        while {row["run_id"] for row in await pool.fetch(vouched, host.bench.host)} != runs:
            await asyncio.sleep(0.01)
        for run_id in runs:
            await host.services.runs.cancel("default", run_id)
            await follow(host, run_id)
        while await pool.fetch(vouched, host.bench.host):
            await asyncio.sleep(0.01)


async def test_a_host_says_that_it_is_there_and_what_it_runs(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """CANCEL-2: also where nothing is reconciled; runs are vouched for only where it is (RECON-1)."""
    host = await host_of(OFF + STALLS)
    assert await pool.fetchval("SELECT live_runs FROM hosts WHERE host_id = $1", host.bench.host) == 0
    await live_run(host)
    async with asyncio.timeout(LONG_S):
        while await pool.fetchval("SELECT live_runs FROM hosts") != 1:
            await asyncio.sleep(0.01)
    assert await pool.fetchval("SELECT count(*) FROM run_heartbeats") == 0
    assert await pool.fetchval("SELECT vouches FROM hosts") is False


async def test_a_blocked_event_loop_does_not_silence_its_host(host_of: OpenHost, database: str) -> None:
    """RECON-2: the heartbeat has a thread and a connection of its own."""
    host = await host_of(ON.replace("200ms", "1h") + STALLS)
    await live_run(host)
    with asked_from_here(database) as ask:
        until(lambda: ask("SELECT count(*) FROM run_heartbeats") == 1)
        for _ in range(3):
            before = ask("SELECT min(seen_at) FROM run_heartbeats")
            until(lambda: ask("SELECT min(seen_at) FROM run_heartbeats") != before)  # noqa: B023


async def test_a_loop_that_is_silent_for_the_threshold_is_not_vouched_for(
    host_of: OpenHost, database: str
) -> None:
    """RECON-2: whatever its thread can still do, such a host serves nobody."""
    host = await host_of(ON + STALLS)
    await live_run(host)
    silent = "SELECT max(seen_at) < clock_timestamp() - interval '500 ms' FROM hosts"
    with asked_from_here(database) as ask:
        until(lambda: ask(silent) is True)
        async with asyncio.timeout(LONG_S):  # and now that the loop turns again
            while ask(silent):
                await asyncio.sleep(0.01)


async def test_a_heartbeat_that_fails_is_counted_and_the_next_one_tries_again(
    host_of: OpenHost, database: str, tmp_path: Path, pool: asyncpg.Pool
) -> None:
    """RECON-3"""
    folder = tmp_path / "p"
    folder.mkdir()
    async with proxied(folder, database) as proxy, AsyncExitStack() as stack:
        host = await host_of(ON + STALLS, dsn=proxy.dsn, within=stack)
        await proxy.refuse()
        failures = "tracon_heartbeat_failures_total"
        await eventually(lambda: (host.services.metrics.registry.get_sample_value(failures) or 0) >= 2)
        last = await pool.fetchval("SELECT seen_at FROM hosts")
        assert host.bench.presence.steady_s == 0
        await proxy.accept()
        await eventually(lambda: host.bench.presence.steady_s > 0)
        assert await pool.fetchval("SELECT seen_at FROM hosts") > last


async def test_a_host_that_stops_gives_up_what_it_cut_off(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """DRAIN-1: nobody has to wait for its silence. It said so when it could write nothing any more."""
    async with AsyncExitStack() as stack:
        host = await host_of(ON.replace("20ms", "10s").replace("200ms", "10s") + STALLS, within=stack)
        run_id = await live_run(host)
    given_up = await pool.fetch("SELECT run_id, host_id, isfinite(seen_at) FROM run_heartbeats")
    assert [tuple(row) for row in given_up] == [(run_id, host.bench.host, False)]
    assert await pool.fetchval("SELECT count(*) FROM hosts") == 0
