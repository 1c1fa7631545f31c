"""Contexts that grow too long: summarised on a binding of its own, and nothing of it lost (CHAIN-13)."""

import asyncio
import logging
from decimal import Decimal
from typing import Any

import pytest

from app.main import Host
from app.models.accounts import Account
from app.supervision.replays import ReplayRequest
from app.supervision.runs import Runs
from app.supervision.sessions import place_after
from domain import events as e
from domain.agent import Link
from domain.events.side import (
    CompactionFailed,
    ContextCompacted,
    SessionSummarised,
    SideCallFailed,
    SideCallQueued,
    SideCallReplied,
    SideCallStarted,
    SideFallbackUsed,
    SidePurpose,
)
from domain.failure import FailureClass
from domain.ids import DEFAULT_TENANT, RunId, run_stream, session_stream
from domain.messages import AssistantMessage, Message, UserMessage
from domain.replay import ReplayTools
from projections.run_record import record_of
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.supervision.crashing import CONTINUING, close_orphan, die, successor
from tests.supervision.one_database import database as database
from tracon import tool

PRICES = 'input_per_million = "1"\noutput_per_million = "1"\n'
DOWN = 'default = { status = { status = 503, message = "down" } }'
SUMS = 'default = { text = "They talked about fish." }'
LONG = "The tide took the pier, and the harbour master wrote it down. " * 20
LONG_ENOUGH = 200
"""Tokens: one long message is more, and what else the tests say is less."""
AGENT_CHAIN = {"ModelFallbackUsed", "ModelCallRetried", "ChainLinkSkipped", "ChainExhausted"}


def settings(
    *summarizers: str, agent: str = 'default = { text = "Aye." }', keep: int = 1, more: str = ""
) -> str:
    """Agent `a`, whose context is summarised by model `s` of the providers `s1` and so on."""
    models = f"[providers.script.models.m]\n{PRICES}{agent}\n"
    for number, does in enumerate(summarizers, 1):
        models += f'[providers.s{number}]\ntype = "scripted"\n'
        models += f'[providers.s{number}.models.s]\ninput_per_million = "{number}0"\n'
        models += f'output_per_million = "{number}0"\n{does}\n'
    tools = 'tools = ["look"]' if "look" in agent else ""
    others = ", ".join(f'{{ provider = "s{n}", model = "s" }}' for n in range(2, len(summarizers) + 1))
    agents = (
        '[agents.a]\nprovider = "script"\nmodel = "m"\n'
        f"{tools}\n"
        f"[agents.a.compaction]\nthreshold = {LONG_ENOUGH}\nkeep_recent = {keep}\n"
        f'summarizer = {{ provider = "s1", model = "s", fallbacks = [{others}] }}\n'
    )
    return scripted(models, agents, more)


@tool(effect="read")
def look() -> str:
    """Look."""
    return LONG


TALK: tuple[Message, ...] = (
    UserMessage(content=LONG),
    AssistantMessage(content="I see."),
    UserMessage(content="And now?"),
)


async def run(host: Host, **more: Any) -> list[e.Recorded[e.Event]]:
    return await follow(host, await start(host, "a", **more))


async def test_what_is_too_long_is_summarised_before_the_model_is_called(host_of: OpenHost) -> None:
    """CHAIN-13: the whole of it on record, in the events' order; the input stays as it was said."""
    seen = await run(await host_of(settings(SUMS)), messages=TALK)
    assert kinds(seen)[1:] == [
        "RunStarted",
        "SideCallStarted",
        "SideCallReplied",
        "ContextCompacted",
        "ModelCallStarted",
        "ModelReplied",
        "RunCompleted",
    ]
    (compacted,) = only(seen, ContextCompacted)
    assert (compacted.summary.text, compacted.summary.messages) == ("They talked about fish.", 2)
    assert compacted.context_tokens > LONG_ENOUGH
    assert only(seen, e.RunCreated)[0].input == TALK
    assert only(seen, e.ModelReplied)[0].usage.input_tokens < len(LONG.split())


async def test_what_is_short_enough_is_left_alone(host_of: OpenHost) -> None:
    seen = await run(await host_of(settings(SUMS)))
    assert "SideCallStarted" not in kinds(seen)


async def test_a_turn_that_grows_too_long_is_summarised_between_its_steps(host_of: OpenHost) -> None:
    """CHAIN-13: tool calls and their results go together, and never half of them."""
    steps = '{ tool_call = { name = "look" } }'
    agent = f'script = [{steps}, {steps}, {{ text = "Seen." }}]'
    host = await host_of(settings(SUMS, agent=agent), tools=(look,))
    seen = await run(host)
    compactions = only(seen, ContextCompacted)
    assert [one.summary.messages for one in compactions] == [3]
    assert only(seen, e.RunCompleted)[0].answer == "Seen."
    assert len(only(seen, e.ToolReturned)) == 2


async def test_the_provider_counts_better_than_anybody(host_of: OpenHost) -> None:
    """CHAIN-13: what it reported of the last call is what counts, however short the texts look."""
    used = "usage = { input_tokens = 5000, output_tokens = 1 }"
    agent = f'default = [{{ tool_call = {{ name = "look" }}, {used} }}, {{ text = "Seen." }}]'

    @tool(name="look", effect="read")
    def glance() -> str:
        """Look."""
        return "seen " * 30

    host = await host_of(settings('default = { text = "Hm." }', agent=agent), tools=(glance,))
    seen = await run(host, text="Look, and tell me what there is to be seen of it all. " * 4)
    (compacted,) = only(seen, ContextCompacted)
    assert compacted.context_tokens > 5000
    assert kinds(seen).index("ContextCompacted") > kinds(seen).index("ToolReturned")


class TestAccount:
    """CHAIN-13: who answered, at what price, and whose model the run's is."""

    async def test_the_summary_is_priced_at_the_model_that_wrote_it(self, host_of: OpenHost) -> None:
        wrote = 'default = { text = "Fish.", usage = { input_tokens = 100, output_tokens = 10 } }'
        agent = 'default = { text = "Aye.", usage = { input_tokens = 20, output_tokens = 5 } }'
        host = await host_of(settings(DOWN, wrote, agent=agent))
        seen = await run(host, messages=TALK)
        (replied,) = only(seen, SideCallReplied)
        assert (replied.provider, replied.cost) == ("s2", Decimal("0.0022"))
        record = record_of(seen)
        assert record is not None
        assert (record.provider, record.model_id) == ("script", "m")
        assert (record.cost, record.usage.total) == ("0.002225", 135)

    async def test_a_switch_is_logged_and_is_none_of_the_agents(
        self, host_of: OpenHost, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING):
            seen = await run(await host_of(settings(DOWN, SUMS)), messages=TALK)
        assert only(seen, SideFallbackUsed) == [
            SideFallbackUsed(
                purpose=SidePurpose.COMPACTION,
                primary=Link(provider="s1", model="s"),
                fallback=Link(provider="s2", model="s"),
                failure_class=FailureClass.UNAVAILABLE,
                reason="it answered 503: down",
            )
        ]
        assert not AGENT_CHAIN & {*kinds(seen)}
        assert only(seen, e.RunCompleted)[0].fallbacks_taken == ()
        assert "side_call.fallback_used" in [one.message for one in caplog.records]

    async def test_what_may_pass_is_tried_once_more(self, host_of: OpenHost) -> None:
        once = f"script = [{{ status = 500 }}]\n{SUMS}"
        seen = await run(await host_of(settings(once)), messages=TALK)
        assert [one.attempt for one in only(seen, SideCallStarted)] == [1, 2]
        assert not AGENT_CHAIN & {*kinds(seen)}
        assert len(only(seen, ContextCompacted)) == 1


class TestFailure:
    """CHAIN-13: a summary that cannot be had is done without."""

    async def test_the_run_goes_on_with_all_it_has(self, host_of: OpenHost) -> None:
        seen = await run(await host_of(settings(DOWN, DOWN)), messages=TALK)
        (failed,) = only(seen, CompactionFailed)
        assert failed.error_type == "chain_exhausted"
        assert only(seen, e.ModelReplied)[0].usage.input_tokens > len(LONG.split())
        assert only(seen, e.RunCompleted)[0].answer == "Aye."

    async def test_a_summary_that_makes_nothing_shorter_is_of_no_use(self, host_of: OpenHost) -> None:
        longer = f'default = {{ text = "{LONG * 3}" }}'
        seen = await run(await host_of(settings(longer, SUMS)), messages=TALK)
        assert [one.flaw is None for one in only(seen, SideCallReplied)] == [False, False, True]
        assert only(seen, ContextCompacted)[0].summary.text == "They talked about fish."

    async def test_a_summarizer_that_says_nothing_takes_half_of_the_time_at_most(
        self, host_of: OpenHost
    ) -> None:
        """It is bounded by the run's deadline as every call is, and leaves the run something of it."""
        host = await host_of(settings("default = { silent = true }", more='[turn]\ntimeout = "8s"'))
        seen = await run(host, messages=TALK)
        assert only(seen, SideCallFailed)[0].failure_class is FailureClass.INTERNAL
        assert kinds(seen)[-4:] == ["CompactionFailed", "ModelCallStarted", "ModelReplied", "RunCompleted"]

    async def test_a_silent_link_is_left_in_time_although_it_is_the_last(self, host_of: OpenHost) -> None:
        """CLASS-2 gives the last link all the time there is; here the run goes on without."""
        quick = '[chain]\nfirst_content_timeout = "100ms"'
        seen = await run(await host_of(settings("default = { silent = true }", more=quick)), messages=TALK)
        assert only(seen, SideCallFailed)[0].failure_class is FailureClass.UNAVAILABLE
        assert kinds(seen)[-1] == "RunCompleted"


class TestStopping:
    """CANCEL-3, CONC-1: a call besides the agent's own is stopped like one of its own."""

    async def test_a_cancel_gives_the_call_up(self, host_of: OpenHost) -> None:
        host = await host_of(settings("default = { silent = true }"))
        run_id = await start(host, "a", messages=TALK)
        await follow(host, run_id, SideCallStarted)
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        seen = await follow(host, run_id)
        assert only(seen, e.RunCancelled)[0].model_call == Link(provider="s1", model="s")
        assert not {"SideCallFailed", "CompactionFailed", "ModelCallStarted"} & {*kinds(seen)}

    async def test_an_open_circuit_refuses_it_without_a_call(self, host_of: OpenHost) -> None:
        """BREAK-1: it passes the same gate."""
        one = "[circuit_breaker]\nfailure_threshold = 1"
        host = await host_of(settings(DOWN, more=one))
        await run(host, messages=TALK)
        seen = await run(host, messages=TALK)
        assert only(seen, SideCallFailed)[0].failure.kind == "circuit_open"
        assert kinds(seen)[-1] == "RunCompleted"


class TestSession:
    """CHAIN-13: a long session is summarised once, for all of its runs."""

    async def talk(self, host: Host, session: str, *texts: str) -> list[list[e.Recorded[e.Event]]]:
        return [await run(host, text=text, session_id=session) for text in texts]

    async def test_the_next_runs_of_a_session_use_the_summary(self, host_of: OpenHost) -> None:
        host = await host_of(settings(SUMS))
        _, second, third = await self.talk(host, "one", LONG, "And?", "Well?")
        assert [one.reused for one in only(second, ContextCompacted)] == [False]
        assert [one.reused for one in only(third, ContextCompacted)] == [True]
        assert "SideCallStarted" not in kinds(third)
        turns = await host.services.log.read_stream(session_stream(DEFAULT_TENANT, "one"))
        (summarised,) = only(turns, SessionSummarised)
        assert summarised.summary == only(second, ContextCompacted)[0].summary

    async def test_the_session_loses_nothing(self, host_of: OpenHost) -> None:
        host = await host_of(settings(SUMS))
        await self.talk(host, "two", LONG, "And?")
        turns = await host.services.log.read_stream(session_stream(DEFAULT_TENANT, "two"))
        said = [message.content for turn in only(turns, e.SessionTurnAdded) for message in turn.messages]
        assert said == [LONG, "Aye.", "And?", "Aye."]

    async def test_a_run_that_fails_leaves_its_summary_too(self, host_of: OpenHost) -> None:
        agent = 'script = [{ text = "Aye." }, { status = 400 }]\ndefault = { text = "Aye." }'
        host = await host_of(settings(SUMS, agent=agent))
        _, second, third = await self.talk(host, "three", LONG, "And?", "Well?")
        assert kinds(second)[-1] == "RunFailed"
        assert [one.reused for one in only(third, ContextCompacted)] == [True]

    async def test_another_summary_stands_for_the_first_and_what_followed(self, host_of: OpenHost) -> None:
        host = await host_of(settings(SUMS))
        *_, last = await self.talk(host, "four", LONG, LONG, LONG, "Well?")
        replied = only(last, SideCallReplied)
        assert [one.reused for one in only(last, ContextCompacted)] == [True, False]
        assert replied[0].usage.input_tokens < 2 * len(LONG.split())

    async def test_a_session_that_branches_off_takes_the_summary_with_it(self, host_of: OpenHost) -> None:
        host = await host_of(settings(SUMS))
        first = await start(host, "a", messages=TALK)
        await follow(host, first)
        log = host.services.log
        place = await place_after(log, DEFAULT_TENANT, await Runs(log).load(first))
        session: dict[str, Any] = {"session_id": place.session_id}
        for more in (session | {"alongside": place.alongside}, session):
            seen = await run(host, **more)
            assert [one.reused for one in only(seen, ContextCompacted)] == [True]


class TestAgain:
    """CHAIN-13: who goes on from a record does not ask for what is on it."""

    async def test_a_replay_asks_for_no_summary_again(self, host_of: OpenHost) -> None:
        host = await host_of(settings(SUMS))
        first = await start(host, "a", messages=TALK)
        seen = await follow(host, first)
        for tools in ReplayTools:
            request = ReplayRequest(tenant=DEFAULT_TENANT, run_id=first, tools=tools)
            replayed = await follow(host, await host.services.replays.start(request))
            assert "SideCallStarted" not in kinds(replayed)
            (again,) = only(replayed, ContextCompacted)
            assert (again.summary, again.reused) == (only(seen, ContextCompacted)[0].summary, True)

    async def test_a_continuation_asks_for_no_summary_again(self, host_of: OpenHost) -> None:
        """CONT-1: the host died with the summary on record, in the model call that followed it."""
        more = CONTINUING.format(attempts=1)
        host = await host_of(settings(SUMS, agent="default = { silent = true }", more=more))
        other = await host_of(settings(DOWN, more=more))
        run_id = await start(host, "a", messages=TALK, session_id="five")
        await follow(host, run_id, e.ModelCallStarted)
        seen = await self.continued(host, other, run_id)
        assert "SideCallStarted" not in kinds(seen)
        assert [one.reused for one in only(seen, ContextCompacted)] == [True]
        assert kinds(seen)[-1] == "RunCompleted"

    async def test_a_run_that_died_while_it_was_summarised_goes_on(self, host_of: OpenHost) -> None:
        """CONT-1."""
        more = CONTINUING.format(attempts=1)
        host = await host_of(settings("default = { silent = true }", more=more))
        other = await host_of(settings(SUMS, more=more))
        run_id = await start(host, "a", messages=TALK, session_id="six")
        await follow(host, run_id, SideCallStarted)
        seen = await self.continued(host, other, run_id)
        assert [one.reused for one in only(seen, ContextCompacted)] == [False]
        assert kinds(seen)[-1] == "RunCompleted"

    async def continued(self, host: Host, other: Host, run_id: RunId) -> list[e.Recorded[e.Event]]:
        await die(host)
        await close_orphan(other, run_id)
        assert kinds(await other.services.log.read_stream(run_stream(run_id)))[-1] == "RunContinued"
        return await follow(other, await successor(other, run_id))

    async def test_a_turn_that_begins_again_is_shown_what_is_left_of_it(self, host_of: OpenHost) -> None:
        """CHAIN-6: in restart mode the next link is given the input, summarised as it was."""
        down = "{ status = 503 }"
        agent = (
            f'script = [{{ tool_call = {{ name = "look" }} }}, {down}]\n'
            '[providers.p2]\ntype = "scripted"\n[providers.p2.models.m]\ndefault = { text = "Aye." }'
        )
        toml = settings(SUMS, agent=agent).replace(
            'model = "m"\n',
            'model = "m"\nfallback_mode = "restart"\nfallbacks = [{ provider = "p2", model = "m" }]\n',
        )
        seen = await run(await host_of(toml, tools=(look,)), messages=TALK)
        assert [one.restarted for one in only(seen, e.ModelFallbackUsed)] == [True]
        after = kinds(seen)[kinds(seen).index("ModelFallbackUsed") :]
        assert after == [
            "ModelFallbackUsed",
            "ContextCompacted",
            "ModelCallStarted",
            "ModelReplied",
            "RunCompleted",
        ]
        assert only(seen, ContextCompacted)[-1].reused


async def test_a_long_wait_for_a_place_is_told(host_of: OpenHost) -> None:
    """CONC-2."""
    one = "[model_concurrency]\nmax_concurrent_calls_per_provider = 1\n"
    host = await host_of(settings(SUMS, more=one))
    held = asyncio.Event()

    async def call() -> Any:
        held.set()
        return await asyncio.Event().wait()

    holding = asyncio.create_task(host.bench.gate.call(Account("s1"), call))
    await held.wait()
    run_id = await start(host, "a", messages=TALK)
    seen = await follow(host, run_id, SideCallQueued)
    assert only(seen, SideCallQueued)[0].provider == "s1"
    holding.cancel()
    await asyncio.wait([holding])
    assert kinds(await follow(host, run_id))[-1] == "RunCompleted"
