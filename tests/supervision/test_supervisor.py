"""What becomes of a run when its actor crashes, loses its stream, or loses the store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.db.errors import StoreUnavailable
from app.main import Host
from app.supervision.runs import RunNotFound, Runs
from domain import events as e
from domain.commands import FailRun
from domain.decide import RunAlreadyEnded
from domain.failure import ErrorClass, RunError
from domain.ids import DEFAULT_TENANT, RunId, run_stream
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.store.proxy import Proxy, proxied
from tracon import tool

CLOSED = RunError(message="closed elsewhere", type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
AGENT = '[agents.a]\nprovider = "script"\nmodel = "m"\n'
STALLS = scripted('[providers.script.models.m.default]\ntext = "one two three"\nstall_after = 2\n', AGENT)
TWO_TOOLS = scripted(
    '[[providers.script.models.m.default]]\ntool_calls = [{ name = "first" }, { name = "second" }]\n'
    '[[providers.script.models.m.default]]\ntext = "done"\n',
    AGENT + 'tools = ["first", "second"]\n',
)


@pytest.fixture
async def proxy(database: str, tmp_path: Path) -> AsyncIterator[Proxy]:
    folder = tmp_path / "p"
    folder.mkdir()
    async with proxied(folder, database) as opened:
        yield opened


async def gone(host: Host, run_id: RunId) -> None:
    """Return once the run is no longer live here."""
    while host.roster.find(run_id) is not None:
        await asyncio.sleep(0)


async def test_a_run_whose_actor_crashes_ends_as_failed(
    host_of: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    """A crash is logged once and closes the run: it never stays Running."""
    host = await host_of(STALLS)
    vars(host.bench.accounts).clear()  # a defect of ours: the run is about to use what is not there
    run_id = await start(host, "a")
    [failed] = only(await follow(host, run_id), e.RunFailed)
    assert (failed.error_type, failed.error_class) == ("internal_error", ErrorClass.INTERNAL)
    assert [r.message for r in caplog.records if r.name == "app.supervision.supervisor"] == ["run.crashed"]


async def test_a_run_whose_task_a_stranger_cancels_ends_as_failed(
    host_of: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Only a host that stops leaves runs open: here nobody would ever close it, nor miss its owner."""
    host: Host

    @tool(effect="read")
    async def first() -> str:
        """Clean up more than is its own."""
        for task in asyncio.all_tasks():
            if task.get_name().startswith("run "):
                task.cancel()
        await asyncio.Event().wait()
        return "never"

    @tool(effect="read")
    def second() -> str:
        """Must not run."""
        return "never"

    host = await host_of(TWO_TOOLS, tools=(first, second))
    run_id = await start(host, "a")
    async with asyncio.timeout(10):
        [failed] = only(await follow(host, run_id), e.RunFailed)
    await gone(host, run_id)
    assert (failed.error_type, failed.error_class) == ("internal_error", ErrorClass.INTERNAL)
    told = [r.message for r in caplog.records if r.name == "app.supervision.supervisor"]
    assert told == ["run.cancelled_by_a_stranger"]


async def test_a_run_that_was_closed_elsewhere_starts_nothing_more(host_of: OpenHost) -> None:
    """EVENT-3: the next append conflicts; the tool in progress is the last thing that happens here."""
    entered, leave = asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    @tool(effect="write")
    async def first() -> str:
        """Come back when told."""
        entered.set()
        await leave.wait()
        ran.append("first")
        return "first"

    @tool(effect="destructive")
    def second() -> str:
        """Must not run."""
        ran.append("second")
        return "second"

    host = await host_of(TWO_TOOLS, tools=(first, second))
    other = await host_of(TWO_TOOLS, tools=(first, second))
    run_id = await start(host, "a")
    await entered.wait()
    await Runs(other.services.log).execute(run_id, FailRun(error=CLOSED))
    leave.set()
    await gone(host, run_id)
    assert host.services.metrics.registry.get_sample_value("tracon_runs_fenced_total") == 1
    assert ran == ["first"]
    recorded = await host.services.log.read_stream(run_stream(run_id))
    assert kinds(recorded)[-1] == "RunFailed"
    assert [one.sequence for one in recorded] == list(range(1, len(recorded) + 1))


async def test_a_stream_that_is_lost_stops_the_model_call(host_of: OpenHost) -> None:
    """EVENT-3: a conflict interrupts whatever the run waits for; nobody has to notice it later."""
    models = f'[providers.script.models.m.default]\ntext = "{"word " * 999}"\ndelay = "50ms"\n'
    host, other = [await host_of(scripted(models, AGENT)) for _ in range(2)]
    run_id = await start(host, "a", streaming=True)
    await follow(host, run_id, e.TextDelta)
    await Runs(other.services.log).execute(run_id, FailRun(error=CLOSED))
    await gone(host, run_id)
    assert kinds(await follow(host, run_id))[-1] == "RunFailed"


async def test_a_short_outage_changes_nothing_but_the_time(host_of: OpenHost, proxy: Proxy) -> None:
    """EVENT-8: a live run holds at its next durability barrier until the store is back."""
    entered, leave = asyncio.Event(), asyncio.Event()

    @tool(effect="write")
    async def first() -> str:
        """Come back when told."""
        entered.set()
        await leave.wait()
        return "first"

    @tool(effect="write")
    def second() -> str:
        """Answer."""
        return "second"

    host = await host_of(TWO_TOOLS, tools=(first, second), dsn=proxy.dsn)
    run_id = await start(host, "a")
    await entered.wait()
    await proxy.refuse()
    leave.set()
    while host.services.log.down is None:
        await asyncio.sleep(0.01)
    assert host.roster.find(run_id) is not None
    await proxy.accept()
    seen = await follow(host, run_id)
    assert [one.output for one in only(seen, e.ToolReturned)] == ["first", "second"]
    assert kinds(seen)[-1] == "RunCompleted"


async def test_a_long_outage_ends_the_run_and_the_end_is_recorded_when_the_store_is_back(
    host_of: OpenHost, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    """EVENT-8: past `store.outage_patience` the run does nothing more; it does not stay Running either."""
    entered, leave = asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    @tool(effect="write")
    async def first() -> str:
        """Come back when told."""
        entered.set()
        await leave.wait()
        return "first"

    @tool(effect="destructive")
    def second() -> str:
        """Must not run."""
        ran.append("second")
        return "second"

    patience = '[store]\noutage_patience = "50ms"\n'
    host = await host_of(patience + TWO_TOOLS, tools=(first, second), dsn=proxy.dsn)
    run_id = await start(host, "a")
    await entered.wait()
    await proxy.refuse()
    leave.set()
    while host.services.log.down is None:
        await asyncio.sleep(0.01)
    with pytest.raises(StoreUnavailable):
        await start(host, "a")
    while "run.store_lost" not in [record.message for record in caplog.records]:
        await asyncio.sleep(0.01)
    await proxy.accept()
    [failed] = only(await follow(host, run_id), e.RunFailed)
    assert (failed.error_type, failed.error_class) == ("store_unavailable", ErrorClass.INFRASTRUCTURE)
    assert ran == []


async def test_a_submission_during_an_outage_is_refused_at_once(host_of: OpenHost, proxy: Proxy) -> None:
    """EVENT-8: nothing is acknowledged that was not kept."""
    host = await host_of(STALLS, dsn=proxy.dsn)
    await proxy.refuse()
    with pytest.raises(StoreUnavailable) as refused:
        await start(host, "a")
    assert refused.value.retry_after_s > 0
    await proxy.accept()
    assert len(host.roster) == 0


async def test_a_submission_whose_answer_was_lost_does_not_stay_open(host_of: OpenHost, proxy: Proxy) -> None:
    """EVENT-8: it was refused, so nobody works on it; had it been kept, it is closed."""
    host = await host_of(STALLS, dsn=proxy.dsn)
    await follow(host, await start(host, "a", streaming=True), e.TextDelta)
    proxy.lose_reply()
    run_id = await start(host, "a", streaming=True)
    assert kinds(await follow(host, run_id, e.TextDelta))[:2] == ["RunCreated", "RunStarted"]


async def test_cancel_tells_apart_unknown_and_ended(host_of: OpenHost) -> None:
    """CANCEL-1: 404 for what is not this tenant's, 409 for what has ended."""
    host = await host_of(STALLS)
    run_id = await start(host, "a", streaming=True)
    await follow(host, run_id, e.TextDelta)
    with pytest.raises(RunNotFound):
        await host.services.runs.cancel("another", run_id)
    await host.services.runs.cancel(DEFAULT_TENANT, run_id)
    await follow(host, run_id)
    await gone(host, run_id)
    with pytest.raises(RunAlreadyEnded):
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)


async def test_a_host_that_stops_leaves_its_runs_as_they_stand(host_of: OpenHost) -> None:
    """Without a drain a stop is a cut: the log says what had happened, and nothing that had not."""
    host = await host_of(STALLS)
    watching = await host_of(STALLS)
    run_id = await start(host, "a", streaming=True)
    await follow(host, run_id, e.TextDelta)
    await host.roster.stop()
    await gone(host, run_id)
    recorded = await watching.services.log.read_stream(run_stream(run_id))
    assert not {"RunFailed", "RunCancelled", "RunCompleted"} & set(kinds(recorded))
