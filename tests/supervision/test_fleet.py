"""Figures that must hold if all is well, each driven to where it does not (RECON, SINGLE, CONC)."""

import asyncio
import math
from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.main import Host
from app.metrics import Metrics
from app.supervision.fleet import Fleet
from app.supervision.singleton import Unlimited
from domain.ids import DEFAULT_TENANT
from tests.hosts import OpenHost, follow, scripted, start
from tests.http.client import eventually
from tests.jobs.working import Gate, shown

AGENTS = """
[agents.gated]
provider = "script"
model = "gated"
tools = ["gate"]
[agents.silent]
provider = "script"
model = "silent"
"""
MODELS = """
[providers.script.models.silent.default]
silent = true
[providers.script.models.gated]
supports_tools = true
default = [{ tool_call = { name = "gate" } }, { text = "through" }]
"""
RECONCILED = '[run_reconciliation]\nenabled = true\nheartbeat_interval = "50ms"\norphan_threshold = "5m"\n'
PLACES = "[model_concurrency]\nmax_concurrent_calls_per_provider = 5\n"
SETTINGS = scripted(MODELS, AGENTS, RECONCILED + PLACES)


class Counted:
    """The figures of the fleet, counted anew each time somebody looks."""

    def __init__(self, pool: asyncpg.Pool, silence_s: float = 300.0) -> None:
        self.metrics = Metrics()
        self.fleet = Fleet(pool, silence_s, self.metrics)

    async def of(self, series: str, **labels: str) -> float:
        await self.fleet.count(Unlimited())
        value = self.metrics.registry.get_sample_value(series, labels)
        return math.nan if value is None else value

    async def becomes(self, series: str, wanted: float) -> None:
        async with asyncio.timeout(15):
            while await self.of(series) != wanted:
                await asyncio.sleep(0.01)


@pytest.fixture
def counted(pool: asyncpg.Pool) -> Counted:
    return Counted(pool)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def host(host_of: OpenHost, gate: Gate) -> AsyncIterator[Host]:
    yield await host_of(SETTINGS, tools=(gate.tool,))
    gate.let_go.set()


async def test_runs_that_a_host_has_are_accounted_for(host: Host, gate: Gate, counted: Counted) -> None:
    """RECON-2: one that waits for its session, too."""
    await start(host, "gated", session_id="s")
    await start(host, "gated", session_id="s")
    await gate.reached.wait()
    await shown(host, "runs")
    await counted.becomes("tracon_runs_unaccounted", 0)
    assert await counted.of("tracon_runs_running") == 1
    assert await counted.of("tracon_hosts_alive") == 1


async def test_a_run_in_no_host_is_more_than_zero(counted: Counted, pool: asyncpg.Pool, host: Host) -> None:
    """RECON-2"""
    await start(host, "silent")
    await shown(host, "runs")
    await counted.becomes("tracon_runs_unaccounted", 0)
    lone = Counted(pool, silence_s=-3600.0)  # as if no host had been heard of
    assert await lone.of("tracon_runs_unaccounted") == 1
    assert await lone.of("tracon_hosts_alive") == 0
    assert await lone.of("tracon_runs_silent") == 1
    assert await counted.of("tracon_runs_silent") == 0


async def test_the_age_of_a_lease_is_told_whoever_holds_it(counted: Counted, pool: asyncpg.Pool) -> None:
    """SINGLE-1"""
    await pool.execute(
        "INSERT INTO leases VALUES ('work', 'somebody', 1, now(), now() - interval '90 s', now())"
    )
    assert await counted.of("tracon_lease_age_seconds", lease="work") >= 90
    await pool.execute("DELETE FROM leases")
    assert math.isnan(await counted.of("tracon_lease_age_seconds", lease="work"))


async def test_a_cancel_that_was_accepted_is_pending_until_its_run_has_ended(
    host: Host, counted: Counted, pool: asyncpg.Pool
) -> None:
    """CANCEL-1"""
    run_id = await start(host, "silent", streaming=True)
    await host.roster.stop()
    await pool.execute("INSERT INTO cancel_requests VALUES ($1, 'gone', '')", run_id)
    assert await counted.of("tracon_cancels_pending") == 1


async def test_calls_under_way_are_as_many_as_places_in_use(host: Host) -> None:
    """CONC-2: a place that nobody gives back would show as a difference."""
    registry = host.services.metrics.registry

    def value(series: str) -> float:
        return registry.get_sample_value(series, {"provider": "script"}) or 0.0

    runs = [await start(host, "silent") for _ in range(3)]
    await eventually(lambda: value("tracon_model_calls_live") == 3)
    assert value("tracon_model_places_in_use") == 3
    for run_id in runs:
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        await follow(host, run_id)
    assert value("tracon_model_calls_live") == value("tracon_model_places_in_use") == 0


async def test_one_host_counts_for_all_and_the_others_show_nothing_old(pool: asyncpg.Pool) -> None:
    """SINGLE-1: figures end with the term in which they were gathered."""
    counted = Counted(pool)
    assert math.isnan(counted.metrics.registry.get_sample_value("tracon_hosts_alive") or 0.0)
    assert await counted.of("tracon_hosts_alive") == 0
    counted.fleet.leave()
    assert math.isnan(counted.metrics.registry.get_sample_value("tracon_hosts_alive") or 0.0)


async def test_a_host_gathers_them_by_itself(host: Host) -> None:
    """It is a duty: no scrape asks the database for them."""
    value = host.services.metrics.registry.get_sample_value
    await eventually(lambda: value("tracon_hosts_alive") == 1)
