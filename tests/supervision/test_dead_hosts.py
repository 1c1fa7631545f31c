"""Hosts that are killed, or stopped and woken up, or busy: real processes, and real signals."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from app.main import Host
from domain import events as e
from domain.ids import RunId, run_stream
from tests.hosts import OpenHost, follow, kinds, only, scripted
from tests.http.client import eventually
from tests.supervision.one_database import database as database
from tests.supervision.processes import NO_SCAN, RECONCILING, Busy, Trial, busy_provider, on_trial

SINGLETON = '[singleton_execution]\nenabled = true\nlease_duration = "3s"\n'
AGENT = '[agents.{0}]\nprovider = "script"\nmodel = "{0}"\n'
TOOLS = AGENT + "tools = [{1}]\n"
CALLS = '[[providers.script.models.{0}.default]]\ntool_call = {{ name = "{1}" }}\n'
DONE = '[[providers.script.models.{0}.default]]\ntext = "done"\n'
STALLS = scripted(
    '[providers.script.models.stalls.default]\ntext = "one two"\nstall_after = 1\n', AGENT.format("stalls")
)


def settings(provider: str) -> str:
    models = "".join(
        (
            CALLS.format("careless", "wait_for_go")
            + CALLS.format("careless", "destroy")
            + DONE.format("careless"),
            CALLS.format("burning", "burn") + DONE.format("burning"),
            CALLS.format("seizing", "seize") + CALLS.format("seizing", "destroy") + DONE.format("seizing"),
            CALLS.format("blocking", "block") + DONE.format("blocking"),
        )
    )
    agents = "".join(
        (
            TOOLS.format("careless", '"wait_for_go", "destroy"'),
            TOOLS.format("burning", '"burn"'),
            TOOLS.format("seizing", '"seize", "destroy"'),
            TOOLS.format("blocking", '"block"'),
            '[agents.retrying]\nprovider = "wire"\nmodel = "m"\n',
            f'[providers.wire]\ntype = "openai"\nbase_url = "{provider}"\n',
            "[providers.wire.models.m]\nsupports_tools = true\n",
        )
    )
    return scripted(models, agents, NO_SCAN)


@pytest.fixture(scope="module")
def provider() -> Iterator[Busy]:
    with busy_provider() as server:
        yield server


@pytest.fixture(scope="module")
def trial(database: str, provider: Busy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """One host that finds no orphans itself, for all tests that leave it alive."""
    with on_trial(tmp_path_factory.mktemp("trial"), database, settings(provider.url)) as running:
        yield running


@asynccontextmanager
async def stopped(trial: Trial) -> AsyncIterator[None]:
    """The host stands still, all of its threads, and knows nothing of it."""
    trial.service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        trial.service.process.send_signal(signal.SIGCONT)


async def closed_by(host: Host, run_id: RunId) -> int:
    """Wait until the run is closed as orphaned; return how long its stream is then."""
    recorded = await asyncio.wait_for(follow(host, run_id), 30)
    [failed] = only(recorded, e.RunFailed)
    assert isinstance(failed, e.RunFailed)
    assert failed.error_type == "orphaned"
    return len(recorded)


async def test_a_killed_host_loses_its_lease_and_its_runs_to_another(
    host_of: OpenHost, database: str, pool: asyncpg.Pool, tmp_path: Path
) -> None:
    """RECON-2, SINGLE-2: it was the one that looked for orphans, so first somebody has to take that over."""
    with on_trial(tmp_path, database, RECONCILING + SINGLETON + STALLS) as killed:
        await killed.told("lease.acquired")
        other = await host_of(RECONCILING + SINGLETON + STALLS)
        async with killed.run("stalls") as run_id:
            await follow(other, run_id, e.TextDelta)
            killed.service.process.send_signal(signal.SIGKILL)
            await closed_by(other, run_id)
    lease = await pool.fetchrow("SELECT owner, epoch FROM leases")
    assert lease is not None
    assert tuple(lease) == (other.bench.host, 2)


async def test_a_zombie_starts_no_tool_and_writes_nothing(host_of: OpenHost, trial: Trial) -> None:
    """EVENT-3: woken after its run was closed elsewhere, it ends the tool it was in and lets the run go."""
    other = await host_of(RECONCILING + STALLS)
    async with trial.run("careless") as run_id:
        await trial.marked("waiting")
        async with stopped(trial):
            length = await closed_by(other, run_id)
            trial.go()
        await trial.marked("went")
        await trial.told("run.fenced")
    assert trial.marks() == ["waiting", "went"]
    recorded = await other.services.log.read_stream(run_stream(run_id))
    assert len(recorded) == length
    assert "ToolReturned" not in kinds(recorded)


async def test_a_host_whose_interpreter_stood_still_for_too_long_is_a_zombie_too(
    host_of: OpenHost, trial: Trial
) -> None:
    """EVENT-3, RECON-2: no thread of it could beat and its run was closed; it sees that and stops."""
    other = await host_of(RECONCILING + STALLS)
    fenced, destroyed = trial.logged().count("run.fenced"), trial.marks().count("destroyed")
    async with trial.run("seizing") as run_id:
        length = await closed_by(other, run_id)
        await trial.marked("seized")
        await eventually(lambda: trial.logged().count("run.fenced") > fenced, within_s=30)
    assert trial.marks().count("destroyed") == destroyed
    assert len(await other.services.log.read_stream(run_stream(run_id))) == length


async def test_a_zombie_makes_no_model_call(host_of: OpenHost, trial: Trial, provider: Busy) -> None:
    """EVENT-3: it was about to try once more, which asks nothing of the log before it is done."""
    other = await host_of(RECONCILING + STALLS)
    fenced = trial.logged().count("run.fenced")
    async with trial.run("retrying") as run_id:
        await follow(other, run_id, e.ModelCallRetried)
        async with stopped(trial):
            await closed_by(other, run_id)
        while trial.logged().count("run.fenced") == fenced:
            await asyncio.sleep(0.01)
    assert provider.calls == 1


async def test_a_busy_host_keeps_its_runs(host_of: OpenHost, trial: Trial) -> None:
    """RECON-2: its tools keep the interpreter, or the event loop, to themselves past the threshold."""
    other = await host_of(RECONCILING + STALLS)
    async with trial.run("burning") as burning, trial.run("blocking") as blocking:
        for run_id in (burning, blocking):
            assert kinds(await asyncio.wait_for(follow(other, run_id), 30))[-1] == "RunCompleted"
