"""Two runs of one session never interleave, on however many hosts they are."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from app.db.pool import database_time
from app.identity import new_run_id
from app.main import Host
from app.settings import SessionsSettings
from app.store.event_log import Change, EventLog
from app.store.stream_writer import StreamWriter
from app.supervision.live_run import LiveRun
from app.supervision.runs import Runs
from app.supervision.session_turns import SessionBusy, SessionTurns
from app.supervision.turn_wait import TurnWait
from app.tools.tool import Tool
from domain import events as e
from domain.commands import FailRun
from domain.evolve import fold
from domain.failure import ErrorClass, RunError
from domain.ids import DEFAULT_TENANT, RunId, Version, run_stream, session_stream
from domain.messages import UserMessage, flaw_in
from domain.queueing import QueueSpec
from domain.run import RunStatus
from domain.session import Session
from tests.domain.facts import CREATED, DEFINITION
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.store.proxy import Proxy, proxied
from tracon import tool

SESSION = session_stream(DEFAULT_TENANT, "s")
GATED = (
    '[[providers.script.models.gated.default]]\ntool_call = { name = "gate" }\n'
    '[[providers.script.models.gated.default]]\ntext = "through"\n'
    "[providers.script.models.echo]\n"
)
AGENTS = (
    '[agents.gated]\nprovider = "script"\nmodel = "gated"\ntools = ["gate"]\n'
    '[agents.echo]\nprovider = "script"\nmodel = "echo"\n'
)
CLOSED = RunError(message="closed elsewhere", type="interrupted", error_class=ErrorClass.INFRASTRUCTURE)


class Gate:
    """A tool that is held until the test lets it go, and the hosts' settings with it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()

    @property
    def tools(self) -> tuple[Tool, ...]:
        @tool(effect="read")
        async def gate() -> str:
            """Wait for the test."""
            self.reached.set()
            await self.let_go.wait()
            return "open"

        return (gate,)


def settings(concurrency: str = "queue", more: str = "") -> str:
    return scripted(GATED, AGENTS, f'[sessions]\nconcurrency = "{concurrency}"\n{more}')


async def conversation(host: Host) -> list[e.Recorded[e.Event]]:
    return await host.services.log.read_stream(SESSION)


async def queued(host: Host, run_id: RunId) -> None:
    """Return once the run is known to wait."""
    async for batch in host.services.log.follow(SESSION, 0):
        if any(isinstance(r.event, e.SessionTurnQueued) and r.event.run_id == run_id for r in batch):
            return


@pytest.fixture
async def proxy(database: str, tmp_path: Path) -> AsyncIterator[Proxy]:
    folder = tmp_path / "p"
    folder.mkdir()
    async with proxied(folder, database) as opened:
        yield opened


async def test_a_run_waits_for_the_one_before_it_and_has_its_turn_for_history(host_of: OpenHost) -> None:
    """Accepted and visible, but not begun before the other has ended."""
    gate = Gate()
    host, other = [await host_of(settings(), tools=gate.tools) for _ in range(2)]
    first = await start(host, "gated", "one", session_id="s")
    await gate.reached.wait()
    second = await start(other, "echo", "two", session_id="s")
    await queued(host, second)
    assert kinds(await host.services.log.read_stream(run_stream(second))) == ["RunCreated"]
    assert (await Runs(host.services.log).load(second)).status is RunStatus.QUEUED
    gate.let_go.set()
    before, after = await follow(host, first), await follow(host, second)
    assert kinds(after)[:2] == ["RunCreated", "RunStarted"]
    assert after[1].at >= before[-1].at
    [begun] = only(after, e.RunStarted)
    read = (await conversation(host))[: begun.session_version]
    assert [turn.run_id for turn in only(read, e.SessionTurnAdded)] == [first]


@pytest.mark.parametrize("seed", range(3))
async def test_runs_that_come_to_two_hosts_in_any_order_go_one_after_the_other(
    host_of: OpenHost, seed: int
) -> None:
    """Each begins when the one before it has ended, in the order in which they were accepted."""
    hosts = [await host_of(settings(), tools=Gate().tools) for _ in range(2)]
    chosen = random.Random(seed).choices(hosts, k=10)
    runs = await asyncio.gather(*(start(host, "echo", session_id="s") for host in chosen))
    for host, run_id in zip(chosen, runs, strict=True):
        assert kinds(await follow(host, run_id))[-1] == "RunCompleted"
    check_turns(await conversation(hosts[0]), runs)


def check_turns(told: Sequence[e.Recorded[e.Event]], runs: Sequence[RunId]) -> None:
    waiting: list[RunId] = []
    holder: RunId | None = None
    ended: list[RunId] = []
    for one in told:
        match one.event:
            case e.SessionTurnQueued(run_id=run_id):
                waiting.append(run_id)
            case e.SessionTurnBegun(run_id=run_id):
                assert holder is None
                assert waiting[:1] in ([], [run_id])
                holder, waiting = run_id, waiting[1:]
            case e.SessionTurnAdded(run_id=run_id):
                assert holder == run_id
                holder = None
                ended.append(run_id)
    assert (holder, waiting) == (None, [])
    assert sorted(ended) == sorted(runs)


async def test_a_busy_session_refuses_and_names_the_run_that_has_it(host_of: OpenHost) -> None:
    gate = Gate()
    host, other = [await host_of(settings("reject"), tools=gate.tools) for _ in range(2)]
    first = await start(host, "gated", session_id="s")
    await gate.reached.wait()
    with pytest.raises(SessionBusy, match=str(first)) as refused:
        await start(other, "echo", session_id="s")
    assert refused.value.run_id == first
    gate.let_go.set()
    await follow(host, first)
    assert kinds(await follow(other, await start(other, "echo", session_id="s")))[-1] == "RunCompleted"


async def test_sessions_of_other_names_do_not_wait_and_parallel_ones_neither(host_of: OpenHost) -> None:
    gate = Gate()
    host = await host_of(settings(), tools=gate.tools)
    await start(host, "gated", session_id="s")
    await gate.reached.wait()
    assert kinds(await follow(host, await start(host, "echo", session_id="t")))[-1] == "RunCompleted"
    assert kinds(await follow(host, await start(host, "echo")))[-1] == "RunCompleted"
    beside = await host_of(settings("parallel"), tools=gate.tools)
    assert kinds(await follow(beside, await start(beside, "echo", session_id="s")))[-1] == "RunCompleted"


async def test_a_run_that_failed_holds_its_session_no_longer(host_of: OpenHost) -> None:
    """The run's own end frees it, whoever recorded that and whatever it was."""
    gate = Gate()
    host = await host_of(settings(), tools=gate.tools)
    first = await start(host, "gated", session_id="s")
    await gate.reached.wait()
    second = await start(host, "echo", session_id="s")
    await queued(host, second)
    await Runs(host.services.log).execute(first, FailRun(error=CLOSED))
    assert kinds(await follow(host, second))[-1] == "RunCompleted"


async def test_who_is_cancelled_while_it_waits_never_begins_and_holds_nobody_up(host_of: OpenHost) -> None:
    """CANCEL-3: the cancel is delivered to a wait."""
    gate = Gate()
    host = await host_of(settings(), tools=gate.tools)
    first = await start(host, "gated", session_id="s")
    await gate.reached.wait()
    second, third = [await start(host, "echo", text, session_id="s") for text in ("two", "three")]
    await queued(host, third)
    await host.services.runs.cancel(DEFAULT_TENANT, second, "changed my mind")
    assert kinds(await follow(host, second)) == ["RunCreated", "RunCancelRequested", "RunCancelled"]
    gate.let_go.set()
    assert kinds(await follow(host, third))[-1] == "RunCompleted"
    assert [turn.run_id for turn in only(await conversation(host), e.SessionTurnAdded)] == [first, third]


async def test_a_wait_ends_with_the_runs_deadline(host_of: OpenHost) -> None:
    gate = Gate()
    host = await host_of(settings(), tools=gate.tools)
    hurried = await host_of(settings(more='[turn]\ntimeout = "50ms"'), tools=gate.tools)
    await start(host, "gated", session_id="s")
    await gate.reached.wait()
    [failed] = only(await follow(hurried, await start(hurried, "echo", session_id="s")), e.RunFailed)
    assert (failed.error_type, failed.error_class) == ("deadline_exceeded", ErrorClass.TIMEOUT)
    assert "turn in its session" in failed.error


async def test_a_run_that_is_closed_elsewhere_while_it_waits_is_let_go(host_of: OpenHost) -> None:
    """EVENT-3: nothing of it happens here any more, and it does not wait on."""
    gate = Gate()
    host, other = [await host_of(settings(), tools=gate.tools) for _ in range(2)]
    await start(host, "gated", session_id="s")
    await gate.reached.wait()
    second = await start(host, "echo", session_id="s")
    await queued(other, second)
    await Runs(other.services.log).execute(second, FailRun(error=CLOSED))
    while host.roster.find(second) is not None:
        await asyncio.sleep(0)
    assert kinds(await host.services.log.read_stream(run_stream(second))) == ["RunCreated", "RunFailed"]


async def test_a_run_whose_time_is_long_over_is_ended_by_the_next_of_its_session(host_of: OpenHost) -> None:
    """A dead host does not hold a session for ever, even where nobody closes its runs."""
    host = await host_of(settings(), tools=Gate().tools)
    dead = new_run_id()
    begun = e.SessionTurnBegun(run_id=dead, limit_s=0.0)
    await host.services.log.append(
        Change(
            stream_id=run_stream(dead),
            expected=Version(0),
            tenant=DEFAULT_TENANT,
            events=(CREATED, e.RunStarted(host="gone", definition=DEFINITION)),
        ),
        Change(stream_id=SESSION, expected=Version(0), tenant=DEFAULT_TENANT, events=(begun,)),
    )
    assert kinds(await follow(host, await start(host, "echo", session_id="s")))[-1] == "RunCompleted"
    [failed] = only(await follow(host, dead), e.RunFailed)
    assert failed.error_type == "deadline_exceeded"


async def test_a_session_that_is_opened_in_the_same_append_is_begun_in_it_too(host_of: OpenHost) -> None:
    """What the session begins with is what the model is shown."""
    host = await host_of(settings(), tools=Gate().tools)
    opened = e.SessionOpened(session_id="s", messages=(UserMessage(content="before"),))
    change = Change(stream_id=SESSION, expected=Version(0), tenant=DEFAULT_TENANT, events=(opened,))
    seen = await follow(host, await start(host, "echo", session_id="s", alongside=(change,)))
    assert only(seen, e.RunStarted)[0].session_version == 1
    assert kinds(await conversation(host)) == ["SessionOpened", "SessionTurnBegun", "SessionTurnAdded"]


async def test_a_waiting_run_outlasts_a_short_outage(host_of: OpenHost, proxy: Proxy) -> None:
    """EVENT-8: it holds, and goes on when the store is back."""
    gate = Gate()
    host = await host_of(settings(), tools=gate.tools)
    behind = await host_of(settings(), tools=gate.tools, dsn=proxy.dsn)
    first = await start(host, "gated", session_id="s")
    await gate.reached.wait()
    second = await start(behind, "echo", session_id="s")
    await queued(host, second)
    await proxy.refuse()
    gate.let_go.set()
    await follow(host, first)
    await proxy.accept()
    assert kinds(await follow(host, second))[-1] == "RunCompleted"


async def test_a_queued_run_waits_for_its_session_when_a_worker_has_taken_it(host_of: OpenHost) -> None:
    """JOB-1: it was accepted, so it is not refused, and it waits in its worker's hands."""
    gate = Gate()
    host = await host_of(settings("reject"), tools=gate.tools)
    first = await start(host, "gated", session_id="s")
    await gate.reached.wait()
    second = await start(host, "echo", session_id="s", queue=QueueSpec())
    await queued(host, second)
    gate.let_go.set()
    assert kinds(await follow(host, second))[-1] == "RunCompleted"
    turns = await conversation(host)
    assert [turn.run_id for turn in only(turns, e.SessionTurnAdded)] == [first, second]


async def test_a_cancelled_session_goes_on_with_the_next_run(host_of: OpenHost) -> None:
    """CANCEL-3 (C55): the call that was interrupted has a synthetic result, and the next model reads on."""
    gate = Gate()
    host = await host_of(settings(), tools=gate.tools)
    first = await start(host, "gated", "one", session_id="s")
    await gate.reached.wait()
    await host.services.runs.cancel(DEFAULT_TENANT, first)
    seen = await follow(host, await start(host, "echo", "two", session_id="s"))
    assert [end.answer for end in only(seen, e.RunCompleted)] == ["two"]
    [cut, whole] = only(await conversation(host), e.SessionTurnAdded)
    assert [type(message).__name__ for message in cut.messages] == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
    ]
    assert flaw_in((*cut.messages, *whole.messages)) is None


class HeldAppends:
    """The log, with every append held until the test lets it go."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.under_way = asyncio.Event()
        self.let_go = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, *changes: Change, patience_s: float = 0.0) -> list[e.Recorded[e.Event]]:
        self.under_way.set()
        await self.let_go.wait()
        return await self._log.append(*changes, patience_s=patience_s)


async def test_a_run_that_is_interrupted_while_it_begins_knows_whether_it_has_begun(
    host_of: OpenHost,
) -> None:
    """CANCEL-3: a cancelled append may be stored, and who ends the run has to write behind it."""
    host = await host_of(settings(), tools=Gate().tools)
    held = HeldAppends(host.services.log)
    created = msgspec.structs.replace(CREATED, tenant=DEFAULT_TENANT, session_id="s")
    run_id = new_run_id()
    await host.services.log.append(
        Change(stream_id=run_stream(run_id), expected=Version(0), tenant=DEFAULT_TENANT, events=(created,))
    )
    live = LiveRun(fold(run_id, [created]), Session(), partial(pen_of, host, run_id), 30.0)
    wait = TurnWait(cast(EventLog, held), turns_on(host), live, created, 1.0)
    beginning = asyncio.create_task(wait.over("host-1", DEFINITION))
    await held.under_way.wait()
    beginning.cancel()
    held.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    assert live.run.status is RunStatus.RUNNING
    assert kinds(await host.services.log.read_stream(run_stream(run_id))) == ["RunCreated", "RunStarted"]


def pen_of(host: Host, run_id: RunId, version: Version) -> StreamWriter:
    return StreamWriter(host.services.log, run_stream(run_id), version=version)


def turns_on(host: Host) -> SessionTurns:
    async def never(run_id: RunId, error: RunError) -> None:
        raise AssertionError(f"run {run_id} was closed: {error}")

    return SessionTurns(
        host.services.log,
        SessionsSettings(),
        now=partial(database_time, host.services.pool),
        close=never,
        limit_s=60.0,
        continues=False,
    )
