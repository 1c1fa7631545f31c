"""A live run: what it does in which order, and how it ends."""

import asyncio
import threading
from typing import cast

import pytest

from app.main import Host
from domain import events as e
from domain.agent import Link
from domain.failure import ErrorClass
from domain.ids import DEFAULT_TENANT, run_stream, session_stream
from domain.messages import AssistantMessage, ToolMessage, UserMessage
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tracon import tool

SAYS_HI = scripted(
    '[providers.script.models.m.default]\nchunks = ["Hi", " there"]\n',
    '[agents.a]\nprovider = "script"\nmodel = "m"\n',
)


def calls(*names: str, agent: str = "", more: str = "", after: str = 'text = "done"') -> str:
    """An agent that calls these tools in one step, then answers."""
    listed = ", ".join(f'{{ name = "{name}" }}' for name in names)
    models = (
        f"[[providers.script.models.m.default]]\ntool_calls = [{listed}]\n"
        f"[[providers.script.models.m.default]]\n{after}\n"
    )
    allowed = ", ".join(f'"{name}"' for name in sorted(set(names)))
    agents = f'[agents.a]\nprovider = "script"\nmodel = "m"\ntools = [{allowed}]\n{agent}\n'
    return scripted(models, agents, more)


async def turns_of(host: Host, session_id: str) -> list[e.Recorded[e.SessionTurnAdded]]:
    """What became part of the conversation."""
    recorded = await host.services.log.read_stream(session_stream(DEFAULT_TENANT, session_id))
    added = [one for one in recorded if isinstance(one.event, e.SessionTurnAdded)]
    return cast(list[e.Recorded[e.SessionTurnAdded]], added)


async def test_a_streamed_run_is_told_step_by_step(host_of: OpenHost) -> None:
    """EVENT-1: the stream is gapless from 1, in the order in which things happened."""
    host = await host_of(SAYS_HI)
    seen = await follow(host, await start(host, "a", streaming=True))
    assert [one.sequence for one in seen] == list(range(1, len(seen) + 1))
    assert kinds(seen)[:3] == ["RunCreated", "RunStarted", "ModelCallStarted"]
    assert "".join(one.text for one in only(seen, e.TextDelta)) == "Hi there"
    assert kinds(seen)[-2:] == ["ModelReplied", "RunCompleted"]
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="Hi there")]


async def test_a_buffered_run_records_no_deltas(host_of: OpenHost) -> None:
    host = await host_of(SAYS_HI)
    seen = await follow(host, await start(host, "a"))
    assert kinds(seen) == ["RunCreated", "RunStarted", "ModelCallStarted", "ModelReplied", "RunCompleted"]


async def test_a_tool_starts_only_after_its_invocation_is_committed(host_of: OpenHost) -> None:
    """EVENT-2: durable before effect."""
    committed: list[str] = []
    host: Host

    @tool(effect="read")
    async def look() -> str:
        """Look what the log holds at this moment."""
        recorded = await host.services.log.read_stream(run_stream(run_id))
        committed.extend(kinds(recorded))
        return "seen"

    host = await host_of(calls("look"), tools=(look,))
    started = asyncio.Event()

    run_id = await start(host, "a")
    started.set()
    await follow(host, run_id)
    assert committed[-1] == "ToolInvoking"


async def test_a_result_is_committed_before_the_next_model_call(host_of: OpenHost) -> None:
    """EVENT-2: a crash loses no result that a model has seen."""

    @tool(effect="read")
    def look() -> str:
        """Look."""
        return "seen"

    host = await host_of(calls("look", after="silent = true"), tools=(look,))
    run_id = await start(host, "a")
    adapter_asked = await follow(host, run_id, e.ToolReturned)
    assert kinds(adapter_asked)[-1] in ("ToolReturned", "ModelCallStarted")
    await host.services.runs.cancel(DEFAULT_TENANT, run_id)
    await follow(host, run_id)


async def test_calls_of_one_step_run_one_after_the_other(host_of: OpenHost) -> None:
    running = 0
    most = 0

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return "seen"

    host = await host_of(calls("look", "look", "look"), tools=(look,))
    seen = await follow(host, await start(host, "a"))
    assert most == 1
    pairs = [kind for kind in kinds(seen) if kind.startswith("Tool")]
    assert pairs == ["ToolInvoking", "ToolReturned"] * 3


async def test_calls_of_one_step_run_together_when_that_is_allowed(host_of: OpenHost) -> None:
    together = asyncio.Barrier(3)

    @tool(effect="read")
    async def meet() -> str:
        """Wait for the others."""
        await together.wait()
        return "met"

    more = "[tool_loop]\nallow_concurrent_tool_calls = true"
    host = await host_of(calls("meet", "meet", "meet", more=more), tools=(meet,))
    seen = await follow(host, await start(host, "a"))
    assert [one.output for one in only(seen, e.ToolReturned)] == ["met"] * 3


async def test_identical_calls_have_keys_of_their_own(host_of: OpenHost) -> None:
    """TOOL-1: a call's key names that call; the same call again in one turn is another call."""

    @tool(effect="external")
    def send() -> str:
        """Send."""
        return "sent"

    host = await host_of(calls("send", "send"), tools=(send,))
    seen = await follow(host, await start(host, "a"))
    keys = [one.call_key for one in only(seen, e.ToolInvoking)]
    assert len(set(keys)) == 2


async def test_a_tool_that_fails_is_a_result_that_the_model_reads(host_of: OpenHost) -> None:
    """TOOL-1: a failing tool is a result, and an event."""

    @tool(effect="write")
    def broken() -> str:
        """Break."""
        raise ValueError("no such order")

    after = 'last_tool_result = "it said: {result}"'
    host = await host_of(calls("broken", after=after), tools=(broken,))
    seen = await follow(host, await start(host, "a"))
    [failed] = only(seen, e.ToolFailed)
    assert failed.failure is e.ToolFailure.RAISED
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer=f"it said: {failed.output}")]


async def test_a_tool_that_takes_too_long_is_a_result_too(host_of: OpenHost) -> None:
    """TOOL-1: a timed-out tool is a result that the model reads."""

    @tool(effect="read", timeout=0.01)
    async def stuck() -> str:
        """Never come back."""
        await asyncio.Event().wait()
        return ""

    host = await host_of(calls("stuck"), tools=(stuck,))
    seen = await follow(host, await start(host, "a"))
    assert [one.failure for one in only(seen, e.ToolFailed)] == [e.ToolFailure.TIMED_OUT]
    assert kinds(seen)[-1] == "RunCompleted"


async def test_a_tool_that_the_agent_may_not_call_is_not_invoked(host_of: OpenHost) -> None:
    """A model that makes up a name is told which tools there are."""

    @tool(effect="destructive")
    def forbidden() -> str:
        """Do harm."""
        raise AssertionError("it ran")

    settings = calls("forbidden").replace('tools = ["forbidden"]', "tools = []")
    host = await host_of(settings, tools=(forbidden,))
    seen = await follow(host, await start(host, "a"))
    assert "ToolInvoking" not in kinds(seen)
    assert [one.failure for one in only(seen, e.ToolFailed)] == [e.ToolFailure.UNKNOWN_TOOL]


async def test_a_model_that_never_answers_is_stopped_by_the_step_limit(host_of: OpenHost) -> None:
    @tool(effect="read")
    def look() -> str:
        """Look."""
        return "seen"

    settings = calls("look", more="[turn]\nmax_steps = 3", after='tool_call = { name = "look" }')
    host = await host_of(settings, tools=(look,))
    seen = await follow(host, await start(host, "a"))
    [failed] = only(seen, e.RunFailed)
    assert failed.error_type == "turn_steps_exceeded"
    assert "turn.max_steps" in failed.error
    assert len(only(seen, e.ModelReplied)) == 3


async def test_the_deadline_ends_a_run_that_waits_for_its_model(host_of: OpenHost) -> None:
    models = "[providers.script.models.m.default]\nsilent = true\n"
    agents = '[agents.a]\nprovider = "script"\nmodel = "m"\n'
    host = await host_of(scripted(models, agents, '[turn]\ntimeout = "50ms"'))
    seen = await follow(host, await start(host, "a"))
    [failed] = only(seen, e.RunFailed)
    assert (failed.error_type, failed.error_class) == ("deadline_exceeded", ErrorClass.TIMEOUT)
    assert "turn.timeout" in failed.error


@pytest.mark.parametrize("together", ["false", "true"])
@pytest.mark.parametrize(
    ("ends", "recorded"),
    [("heeding", "ToolFailed"), ("late", "ToolReturned"), ("never", "ToolOutcomeUnknown")],
)
async def test_the_deadline_ends_a_run_whatever_its_tool_makes_of_it(
    host_of: OpenHost, ends: str, recorded: str, together: str
) -> None:
    """A run that is over its time ends; it does not stay Running with nobody at work on it."""
    leave = asyncio.Event()

    @tool(effect="read")
    async def look() -> str:
        """Take too long."""
        while True:
            try:
                await leave.wait()
                return "left"
            except asyncio.CancelledError:
                if ends == "heeding":
                    raise
                if ends == "late":
                    return "late"

    more = (
        '[turn]\ntimeout = "700ms"\n[cancellation]\ngrace = "20ms"\n'
        f"[tool_loop]\nallow_concurrent_tool_calls = {together}"
    )
    host = await host_of(calls("look", more=more), tools=(look,))
    run_id = await start(host, "a")
    async with asyncio.timeout(10):
        seen = await follow(host, run_id)
    assert kinds(seen)[-2:] == [recorded, "RunFailed"]
    assert only(seen, e.RunFailed)[0].error_type == "deadline_exceeded"
    leave.set()


@pytest.mark.parametrize(
    ("behaviour", "error_type", "error_class"),
    [
        ("status = 400", "provider_rejected", ErrorClass.INVALID),
        ("status = 401", "provider_auth", ErrorClass.PROVIDER),
        ("status = 503", "provider_unavailable", ErrorClass.PROVIDER),
        ("refused = true", "provider_unavailable", ErrorClass.PROVIDER),
        ("content_filter = true", "content_filtered", ErrorClass.CONTENT_FILTERED),
        ('text = "one two three"\ncut_after = 1', "stream_error", ErrorClass.PROVIDER),
    ],
)
async def test_a_provider_that_fails_ends_the_run_with_the_failures_own_error(
    host_of: OpenHost, behaviour: str, error_type: str, error_class: ErrorClass
) -> None:
    """CHAIN-1: with one link the failure is the run's own; CHAIN-7: what was delivered stays recorded."""
    models = f"[providers.script.models.m.default]\n{behaviour}\n"
    host = await host_of(scripted(models, '[agents.a]\nprovider = "script"\nmodel = "m"\n'))
    seen = await follow(host, await start(host, "a", streaming=True))
    [failed] = only(seen, e.RunFailed)
    assert (failed.error_type, failed.error_class) == (error_type, error_class)
    assert "script" in failed.error
    assert bool(only(seen, e.TextDelta)) == ("cut_after" in behaviour)


async def test_a_session_continues_a_conversation(host_of: OpenHost) -> None:
    """The turn joins the session in the append that ends the run, so the next run has it."""
    host = await host_of(SAYS_HI)
    first = await start(host, "a", "one", session_id="s")
    await follow(host, first)
    second = await start(host, "a", "two", session_id="s")
    seen = await follow(host, second)
    assert only(seen, e.RunStarted)[0].session_version == 2
    turns = await turns_of(host, "s")
    assert [one.event for one in turns] == [
        e.SessionTurnAdded(
            run_id=run_id,
            messages=(UserMessage(content=text), AssistantMessage(content="Hi there")),
        )
        for run_id, text in ((first, "one"), (second, "two"))
    ]
    run_ends = [r for run_id in (first, second) for r in await follow(host, run_id) if r.sequence == 5]
    assert [turn.at for turn in turns] == [end.at for end in run_ends]


async def test_two_runs_of_a_session_that_run_beside_each_other_both_keep_their_turn(
    host_of: OpenHost,
) -> None:
    """The second one's turn follows the first one's; neither run is lost over it."""
    host = await host_of(f'[sessions]\nconcurrency = "parallel"\n{SAYS_HI}')
    both = [await start(host, "a", text, session_id="s") for text in ("one", "two")]
    for run_id in both:
        assert kinds(await follow(host, run_id))[-1] == "RunCompleted"
    assert {one.event.run_id for one in await turns_of(host, "s")} == set(both)


async def test_a_failed_turn_does_not_join_its_session(host_of: OpenHost) -> None:
    models = "[providers.script.models.m.default]\nstatus = 400\n"
    host = await host_of(scripted(models, '[agents.a]\nprovider = "script"\nmodel = "m"\n'))
    await follow(host, await start(host, "a", session_id="s"))
    assert await turns_of(host, "s") == []


async def test_parameters_fill_the_instructions_and_are_kept(host_of: OpenHost) -> None:
    agent = '[agents.a]\nprovider = "script"\nmodel = "m"\ninstructions = "Answer in {{ language }}."\n'
    models = '[providers.script.models.m.default]\ntext = "ok"\n'
    host = await host_of(scripted(models, agent + 'parameters = { language = "English" }\n'))
    seen = await follow(host, await start(host, "a", parameters={"language": "Latin"}))
    assert only(seen, e.RunCreated)[0].parameters == {"language": "Latin"}
    definition = only(seen, e.RunStarted)[0].definition
    assert definition is not None
    assert definition.instructions == "Answer in Latin."


async def test_live_deltas_are_shown_but_not_recorded(host_of: OpenHost) -> None:
    """EVENT-7: with `live`, text goes out at once without a number, and only the message is recorded."""
    models = '[providers.script.models.m.default]\nchunks = ["a", "b", "c"]\nfirst_delay = "50ms"\n'
    agents = '[agents.a]\nprovider = "script"\nmodel = "m"\n'
    host = await host_of(scripted(models, agents, '[recording]\ndeltas = "live"'))
    run_id = await start(host, "a", streaming=True)
    shown: list[str] = []
    async for frames in host.services.log.follow_live(run_stream(run_id), 0):
        shown += [f.event.text for f in frames if isinstance(f.event, e.TextDelta)]
        if any(isinstance(f.event, e.RunCompleted) for f in frames):
            break
    assert "".join(shown) == "abc"
    assert only(await follow(host, run_id), e.TextDelta) == []


class TestCancelling:
    """CANCEL-3: where a cancel arrives."""

    async def test_a_run_that_waits_for_its_model_stops_at_once(self, host_of: OpenHost) -> None:
        models = '[providers.script.models.m.default]\ntext = "one two three"\nstall_after = 2\n'
        host = await host_of(scripted(models, '[agents.a]\nprovider = "script"\nmodel = "m"\n'))
        run_id = await start(host, "a", streaming=True, session_id="s")
        await follow(host, run_id, e.TextDelta)
        await host.services.runs.cancel(DEFAULT_TENANT, run_id, "enough")
        seen = await follow(host, run_id)
        assert kinds(seen)[-2:] == ["RunCancelRequested", "RunCancelled"]
        given_up = Link(provider="script", model="m")
        assert only(seen, e.RunCancelled) == [e.RunCancelled(reason="enough", model_call=given_up)]

    async def test_a_tool_that_heeds_it_is_recorded_as_cancelled(self, host_of: OpenHost) -> None:
        entered = asyncio.Event()

        @tool(effect="read")
        async def wait() -> str:
            """Wait."""
            entered.set()
            await asyncio.Event().wait()
            return ""

        host = await host_of(calls("wait"), tools=(wait,))
        run_id = await start(host, "a", session_id="s")
        await entered.wait()
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        seen = await follow(host, run_id)
        assert kinds(seen)[-3:] == ["RunCancelRequested", "ToolFailed", "RunCancelled"]
        [turn] = await turns_of(host, "s")
        [result] = [m for m in turn.event.messages if isinstance(m, ToolMessage)]
        assert result.failed

    async def test_a_body_that_does_not_stop_is_left_behind(self, host_of: OpenHost) -> None:
        """CANCEL-3: its outcome is unknown, the run ends all the same, and the session can go on."""
        entered, leave = threading.Event(), threading.Event()

        @tool(effect="destructive")
        def deaf() -> str:
            """Heed nothing."""
            entered.set()
            leave.wait(30)
            return ""

        host = await host_of(calls("deaf", more='[cancellation]\ngrace = "10ms"'), tools=(deaf,))
        run_id = await start(host, "a", session_id="s")
        await asyncio.to_thread(entered.wait)
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        seen = await follow(host, run_id)
        leave.set()
        assert kinds(seen)[-3:] == ["RunCancelRequested", "ToolOutcomeUnknown", "RunCancelled"]
        [turn] = await turns_of(host, "s")
        assert isinstance(turn.event.messages[-1], ToolMessage)

    async def test_what_a_finished_tool_did_stays_recorded(self, host_of: OpenHost) -> None:
        second = asyncio.Event()

        @tool(effect="write")
        def quick() -> str:
            """Be quick."""
            return "written"

        @tool(effect="read")
        async def wait() -> str:
            """Wait."""
            second.set()
            await asyncio.Event().wait()
            return ""

        host = await host_of(calls("quick", "wait"), tools=(quick, wait))
        run_id = await start(host, "a")
        await second.wait()
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        seen = await follow(host, run_id)
        assert [one.output for one in only(seen, e.ToolReturned)] == ["written"]
