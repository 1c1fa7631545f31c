"""A run whose host died goes on elsewhere, and what was done is not done again (CONT)."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.main import Host
from app.supervision import opening, session_turns
from app.supervision.drain import Draining
from app.supervision.opening import Opener
from app.supervision.runs import Runs
from domain import events as e
from domain.commands import FailRun, ResolveTool
from domain.ids import DEFAULT_TENANT, RunId, run_stream, session_stream
from tests.hosts import OpenHost, follow, kinds, only, start
from tests.http.client import eventually
from tests.store.proxy import proxied
from tests.supervision.crashing import GONE, World, close_orphan, die, settings, silent, successor
from tracon import tool

STEPS = ("look", "charge", "notify", "charge")
LOOK = ("look", e.ToolEffect.READ, False)
CHARGE = ("charge", e.ToolEffect.DESTRUCTIVE, False)
NOTIFY = ("notify", e.ToolEffect.EXTERNAL, True)
TOOLS = (LOOK, CHARGE, NOTIFY)
ONCE = {"look": 1, "charge": 2, "notify": 1}


@pytest.mark.parametrize("done", range(len(STEPS) + 1))
async def test_a_run_that_died_after_any_step_goes_on_with_the_next(host_of: OpenHost, done: int) -> None:
    """CONT-2 (C76, C84): the other host runs exactly the steps that were not done, and each tool ran as often
    as if nothing had happened."""
    world = World()
    host = await host_of(settings(STEPS, silent_after=done), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(STEPS), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "a", session_id="s")
    await silent(host, run_id, done)
    await die(host)
    await close_orphan(other, run_id)
    seen = await follow(other, await successor(other, run_id))
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="All done.")]
    assert world.ran() == ONCE
    assert [call.tool for call in world.calls if call.host == "second"] == list(STEPS[done:])
    assert [one.recorded_run_id for one in only(seen, e.ToolAnswered)] == [run_id] * done
    assert len({call.key for call in world.calls}) == len(STEPS)


async def test_the_two_runs_name_each_other_and_the_session_has_one_turn(host_of: OpenHost) -> None:
    """CONT-1, CONT-5: same session, same input, same parameters; both streams say so, in one append."""
    world = World()
    host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(STEPS), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "a", "please", session_id="s", streaming=True)
    await silent(host, run_id, 1)
    await die(host)
    await close_orphan(other, run_id)
    new = await successor(other, run_id)
    old, seen = await other.services.log.read_stream(run_stream(run_id)), await follow(other, new)
    assert kinds(old)[-2:] == ["RunFailed", "RunContinued"]
    [before], [created] = only(old, e.RunCreated), only(seen, e.RunCreated)
    assert (created.continued_from_run_id, created.chain_root_run_id) == (run_id, run_id)
    assert (created.input, created.session_id, created.streaming) == (before.input, "s", True)
    assert seen[0].at == old[-1].at
    turns = await other.services.log.read_stream(session_stream(DEFAULT_TENANT, "s"))
    assert [turn.run_id for turn in only(turns, e.SessionTurnBegun)] == [run_id, new]
    assert [turn.run_id for turn in only(turns, e.SessionTurnAdded)] == [new]


async def died_in(
    host_of: OpenHost, world: World, held: tuple[str, e.ToolEffect, bool]
) -> tuple[Host, RunId]:
    """Another host, and a run that it has closed: its own host died while this tool was at work."""
    tools = (*TOOLS, held)
    steps = ("charge", held[0], "look")
    world.held = ("first", held[0])
    host = await host_of(settings(steps), tools=world.tools("first", *tools))
    other = await host_of(settings(steps), tools=world.tools("second", *tools))
    run_id = await start(host, "a", session_id="s")
    await world.reached.wait()
    await die(host)
    await close_orphan(other, run_id)
    return other, run_id


@pytest.mark.parametrize("effect", [e.ToolEffect.DESTRUCTIVE, e.ToolEffect.EXTERNAL])
async def test_a_call_whose_effect_nobody_knows_waits_for_somebody_to_find_out(
    host_of: OpenHost, effect: e.ToolEffect
) -> None:
    """CONT-3 (C74): charged once, the refund uncertain: not continued until somebody says what came of it."""
    world = World()
    other, run_id = await died_in(host_of, world, ("refund", effect, False))
    old = await other.services.log.read_stream(run_stream(run_id))
    assert kinds(old)[-2:] == ["RunFailed", "RunContinuationBlocked"]
    [blocked] = only(old, e.RunContinuationBlocked)
    [call] = [one for one in only(old, e.ToolInvoking) if one.tool == "refund"]
    assert blocked.cause is e.ContinuationBlock.OUTCOME_UNKNOWN
    assert blocked.remedy.endswith(f"POST /api/runs/{run_id}/tools/{call.call_id}/resolve")
    found = ResolveTool(call_id=call.call_id, output="refunded at noon")
    await other.services.resolutions.resolve(DEFAULT_TENANT, run_id, found)
    seen = await follow(other, await successor(other, run_id))
    assert kinds(seen)[-1] == "RunCompleted"
    assert [one.output for one in only(seen, e.ToolAnswered)] == ["charge is done", "refunded at noon"]
    assert world.ran() == {"charge": 1, "refund": 1, "look": 1}


async def test_a_resolution_that_is_repeated_continues_nothing_twice(host_of: OpenHost) -> None:
    world = World()
    other, run_id = await died_in(host_of, world, ("refund", e.ToolEffect.EXTERNAL, False))
    old = await other.services.log.read_stream(run_stream(run_id))
    found = ResolveTool(call_id=only(old, e.ToolInvoking)[-1].call_id, output="refunded")
    resolve = other.services.resolutions.resolve
    await asyncio.gather(*(resolve(DEFAULT_TENANT, run_id, found) for _ in range(4)))
    await follow(other, await successor(other, run_id))
    assert world.ran()["refund"] == 1


@pytest.mark.parametrize(
    ("name", "effect", "safe"),
    [
        ("peek", e.ToolEffect.READ, False),
        ("note", e.ToolEffect.WRITE, False),
        ("send", e.ToolEffect.EXTERNAL, True),
    ],
)
async def test_a_call_that_may_be_repeated_is_repeated_under_its_own_key(
    host_of: OpenHost, name: str, effect: e.ToolEffect, safe: bool
) -> None:
    """CONT-3, TOOL-1: the outside sees the same key and can tell that it is the same call."""
    world = World()
    other, run_id = await died_in(host_of, world, (name, effect, safe))
    assert kinds(await follow(other, await successor(other, run_id)))[-1] == "RunCompleted"
    assert world.ran() == {"charge": 1, name: 2, "look": 1}
    assert len(world.keys(name)) == 1


async def test_a_tool_that_failed_after_its_effect_is_not_called_again(host_of: OpenHost) -> None:
    """CONT-2 (C74): a failure is a result: it was read, and the turn went on from it."""
    ran: list[str] = []

    @tool(effect="destructive")
    def refund() -> str:
        """Refund, then lose the answer."""
        ran.append("refund")
        raise TimeoutError("no answer")

    steps = ("refund", "look")
    world = World()
    host = await host_of(settings(steps, silent_after=1), tools=(refund, *world.tools("first", LOOK)))
    other = await host_of(settings(steps), tools=(refund, *world.tools("second", LOOK)))
    run_id = await start(host, "a", session_id="s")
    await silent(host, run_id, 1)
    await die(host)
    await close_orphan(other, run_id)
    seen = await follow(other, await successor(other, run_id))
    assert kinds(seen)[-1] == "RunCompleted"
    assert ran == ["refund"]
    assert [one.failed for one in only(seen, e.ToolAnswered)] == [True]


async def test_of_many_hosts_that_hear_of_it_one_continues_it(host_of: OpenHost) -> None:
    """CONT-1, CONT-5: compare and set on the old run's stream."""
    world = World()
    host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
    others = [await host_of(settings(STEPS), tools=world.tools(f"{n}", *TOOLS)) for n in range(3)]
    run_id = await start(host, "a", session_id="s")
    await silent(host, run_id, 1)
    await die(host)
    await close_orphan(others[0], run_id)
    await asyncio.gather(*(other.continuer.consider(run_id) for other in others * 3))
    assert kinds(await follow(others[1], await successor(others[0], run_id)))[-1] == "RunCompleted"
    turns = await others[0].services.log.read_stream(session_stream(DEFAULT_TENANT, "s"))
    assert len(only(turns, e.SessionTurnBegun)) == 2
    assert world.ran() == ONCE


async def test_a_chain_ends_with_its_attempts(host_of: OpenHost) -> None:
    """CONT-1, CONT-4: with two attempts the third interruption is the last."""
    world = World()
    run_id: RunId | None = None
    chain: list[RunId] = []
    for number in range(3):
        toml = settings(STEPS, silent_after=1 if number == 0 else 2 * number, attempts=2)
        host = await host_of(toml, tools=world.tools(str(number), *TOOLS))
        if run_id is None:
            run_id = await start(host, "a", session_id="s")
        else:
            await close_orphan(host, run_id)
            run_id = await successor(host, run_id)
        chain.append(run_id)
        await silent(host, run_id, 1 if number == 0 else 2 * number)
        await die(host)
    last = await host_of(settings(STEPS, attempts=2), tools=world.tools("last", *TOOLS))
    await close_orphan(last, chain[-1])
    [blocked] = only(await last.services.log.read_stream(run_stream(chain[-1])), e.RunContinuationBlocked)
    assert blocked.cause is e.ContinuationBlock.ATTEMPTS_USED_UP
    created = (await Runs(last.services.log).load(chain[-1])).created
    assert created is not None
    assert (created.chain_root_run_id, created.continued_from_run_id) == (chain[0], chain[1])
    assert world.ran() == ONCE
    assert len({call.key for call in world.calls}) == len(STEPS)


async def test_a_cancel_that_whoever_closed_the_run_did_not_see_keeps_it_from_going_on(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """CANCEL-1: it was accepted at the same moment."""
    world = World()
    host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(STEPS), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "a", session_id="s")
    await silent(host, run_id, 1)
    await die(host)
    await pool.execute("INSERT INTO cancel_requests VALUES ($1, 'gone', 'enough')", run_id)
    await close_orphan(other, run_id)
    old = await other.services.log.read_stream(run_stream(run_id))
    assert [one.cause for one in only(old, e.RunContinuationBlocked)] == [e.ContinuationBlock.WAS_ENDING]


async def test_an_outage_in_the_middle_of_it_changes_nothing_but_the_time(
    host_of: OpenHost,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CONT-1, EVENT-8: no client waits for it, so it has the patience of live runs, and is tried once."""
    monkeypatch.setattr(opening, "ADMISSION_PATIENCE_S", 0.01)
    append, world = Opener._append, World()
    async with proxied(tmp_path, database) as proxy:
        host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
        other = await host_of(settings(STEPS), tools=world.tools("second", *TOOLS), dsn=proxy.dsn)
        run_id = await start(host, "a", session_id="s")
        await silent(host, run_id, 1)
        await die(host)
        await Runs(host.services.log).execute(run_id, FailRun(error=GONE))

        async def refused(self: Opener, *arguments: Any) -> Any:
            await proxy.refuse()
            appending = asyncio.create_task(append(self, *arguments))
            await eventually(lambda: "store.down" in [record.message for record in caplog.records])
            await proxy.accept()
            return await appending

        monkeypatch.setattr(Opener, "_append", refused)
        await other.continuer.consider(run_id)
        assert kinds(await follow(host, await successor(host, run_id)))[-1] == "RunCompleted"
    assert world.ran() == ONCE


async def test_a_run_without_a_session_stays_as_it_was_closed(host_of: OpenHost) -> None:
    """CONT-4."""
    world = World()
    host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
    run_id = await start(host, "a")
    await silent(host, run_id, 1)
    await die(host)
    await close_orphan(host, run_id)
    old = await host.services.log.read_stream(run_stream(run_id))
    assert [one.cause for one in only(old, e.RunContinuationBlocked)] == [e.ContinuationBlock.NO_SESSION]


async def test_an_agent_that_is_gone_is_the_reason_that_is_told(host_of: OpenHost) -> None:
    """CONT-4."""
    world = World()
    host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(STEPS).replace("[agents.a]", "[agents.b]"), tools=world.tools("2", *TOOLS))
    run_id = await start(host, "a", session_id="s")
    await silent(host, run_id, 1)
    await die(host)
    await close_orphan(other, run_id)
    old = await other.services.log.read_stream(run_stream(run_id))
    [blocked] = only(old, e.RunContinuationBlocked)
    assert blocked.cause is e.ContinuationBlock.AGENT_UNAVAILABLE
    assert "there is no agent 'a'" in blocked.reason


async def test_switched_off_nothing_is_said_about_it(host_of: OpenHost) -> None:
    """CONT-1: `run_continuation.enabled`."""
    world = World()
    off = settings(STEPS, silent_after=1).replace("[run_continuation]\nenabled = true", "[run_continuation]")
    host = await host_of(off, tools=world.tools("first", *TOOLS))
    run_id = await start(host, "a", session_id="s")
    await silent(host, run_id, 1)
    await die(host)
    await close_orphan(host, run_id)
    assert kinds(await host.services.log.read_stream(run_stream(run_id)))[-1] == "RunFailed"


async def test_a_host_that_stops_leaves_it_to_another(host_of: OpenHost) -> None:
    """DRAIN-1: and says nothing that would keep the other from it."""
    world = World()
    host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
    stopping, other = [await host_of(settings(STEPS), tools=world.tools(n, *TOOLS)) for n in "23"]
    run_id = await start(host, "a", session_id="s")
    await silent(host, run_id, 1)
    await die(host)
    stopping.drain.begin()
    with pytest.raises(Draining):
        await close_orphan(stopping, run_id)
    await other.continuer.consider(run_id)
    assert kinds(await follow(other, await successor(other, run_id)))[-1] == "RunCompleted"


async def test_a_continuation_goes_before_those_that_wait_for_the_session(host_of: OpenHost) -> None:
    """CONT-1: what was asked first is answered first, though it was interrupted; its place is kept."""
    world = World()
    host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(STEPS), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "a", "one", session_id="s")
    await silent(host, run_id, 1)
    second = await start(other, "a", "two", session_id="s")
    await die(host)
    await Runs(other.services.log).execute(run_id, FailRun(error=GONE))
    third = await start(other, "a", "three", session_id="s")
    await other.continuer.consider(run_id)
    await follow(other, third)
    turns = await other.services.log.read_stream(session_stream(DEFAULT_TENANT, "s"))
    new = await successor(other, run_id)
    assert [turn.run_id for turn in only(turns, e.SessionTurnBegun)] == [run_id, new, second, third]


async def test_a_place_that_nobody_takes_is_kept_for_a_while_only(
    host_of: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host that was to continue the run may have died, too."""
    monkeypatch.setattr(session_turns, "CONTINUED_WITHIN_S", 0.1)
    world = World()
    host = await host_of(settings(STEPS, silent_after=1), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(STEPS), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "a", session_id="s")
    await silent(host, run_id, 1)
    second = await start(other, "a", session_id="s")
    await die(host)
    await Runs(other.services.log).execute(run_id, FailRun(error=GONE))
    assert kinds(await follow(other, second))[-1] == "RunCompleted"


QUICKLY = 'heartbeat_interval = "50ms"\norphan_threshold = "2s"\nscan_interval = "50ms"\n'


async def test_when_a_host_stops_another_finds_its_run_and_goes_on(host_of: OpenHost) -> None:
    """RECON-2, CONT-1: from the heartbeat to the continued run's answer, with nobody's help."""
    world = World()
    watchful = "[run_reconciliation]\n" + QUICKLY

    def quick(toml: str) -> str:
        return toml.replace("[run_reconciliation]\n", watchful)

    async with AsyncExitStack() as doomed:
        first = world.tools("first", *TOOLS)
        host = await host_of(quick(settings(STEPS, silent_after=2)), tools=first, within=doomed)
        run_id = await start(host, "a", session_id="s")
        await silent(host, run_id, 2)
    other = await host_of(quick(settings(STEPS)), tools=world.tools("second", *TOOLS))
    await follow(other, run_id, e.RunContinued)
    assert kinds(await follow(other, await successor(other, run_id)))[-1] == "RunCompleted"
    assert world.ran() == ONCE
