"""Answers that an output limit ends, turns that lack their deliverable, and the chain in those rounds."""

import json

import pytest

from app.supervision.model_request import GO_ON
from domain import events as e
from domain.agent import AgentDefinition
from domain.failure import FailureClass
from domain.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from tests.hosts import OpenHost, chained, follow, kinds, only, start
from tests.supervision import models as models
from tests.supervision.conftest import OpenWall
from tests.supervision.one_database import database as database
from tests.supervision.walls import FAMILIES, provider
from tests.upstream.server import Upstream
from tracon import tool

DOWN = '{ status = { status = 503, message = "down" } }'
SCHEMA = 'response_schema = { type = "object", required = ["id"] }'


def script(*behaviours: str) -> str:
    return f"script = [{', '.join(behaviours)}]"


def called(seen: list[e.Recorded[e.Event]]) -> list[str]:
    return [call.provider for call in only(seen, e.ModelCallStarted)]


def heard(seen: list[e.Recorded[e.Event]]) -> str:
    return "".join(delta.text for delta in only(seen, e.TextDelta))


async def test_a_text_that_is_to_be_carried_on_stands_in_the_request_once(
    wall_of: OpenWall, upstream: Upstream
) -> None:
    """CHAIN-8: as the answer so far, and not as an answer before it, too."""
    agent = AgentDefinition(name="a", provider="p", model="length", max_length_continuations=1)
    wall = await wall_of(providers={"p": provider("chat", upstream, "p")}, agents=(agent,))
    await follow(wall.host, await start(wall.host, "a", "Tell me a story."))
    _, second, *_ = wall.attempts("p", "length")  # it only repeats itself, and is asked again
    assert second.body["messages"] == [
        {"role": "user", "content": "Tell me a story."},
        {"role": "assistant", "content": "Once upon a "},
        {"role": "user", "content": GO_ON},
    ]


@pytest.mark.parametrize("streaming", [True, False], ids=["watched", "waited for"])
@pytest.mark.parametrize("family", FAMILIES)
async def test_a_call_that_the_output_limit_cut_off_is_not_made(
    wall_of: OpenWall, upstream: Upstream, family: str, streaming: bool
) -> None:
    """TOOL-1, CHAIN-8: one that lost its arguments looks like one without any. It would order the default."""
    ordered = 0

    @tool(effect="external")
    def order_pizzas(count: int = 100) -> str:
        """Order pizzas."""
        nonlocal ordered
        ordered += 1
        return "ordered"

    model = "is-cut-off-in-a-call"
    settings = provider(family, upstream, "p", models={model: {"supports_tools": True}})
    agent = AgentDefinition(name="a", provider="p", model=model, tools=("order_pizzas",))
    wall = await wall_of(providers={"p": settings}, agents=(agent,), tools=(order_pizzas,))
    seen = await follow(wall.host, await start(wall.host, "a", streaming=streaming))
    assert only(seen, e.RunCompleted)[0].answer == "I see."
    assert [one.failure for one in only(seen, e.ToolFailed)] == [e.ToolFailure.INVALID_ARGUMENTS]
    assert (ordered, only(seen, e.ToolInvoking)) == (0, [])


class TestLength:
    """CHAIN-8: a `length` finish is carried on, on the same link."""

    async def test_further_calls_carry_the_text_on(self, host_of: OpenHost) -> None:
        model = script('{ length = "Once upon " }', '{ length = "a time " }', '{ text = "it was." }')
        host = await host_of(chained(model, 'default = { text = "never" }'))
        seen = await follow(host, await start(host, "a", streaming=True))
        assert called(seen) == ["p1"] * 3
        assert heard(seen) == "Once upon a time it was."
        assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="Once upon a time it was.")]

    async def test_after_three_the_answer_is_what_there_is(self, host_of: OpenHost) -> None:
        parts = (f'{{ length = "{part} " }}' for part in ("one", "two", "three", "four", "five"))
        host = await host_of(chained(script(*parts)))
        seen = await follow(host, await start(host, "a"))
        assert called(seen) == ["p1"] * 4
        (end,) = only(seen, e.RunCompleted)
        assert (end.answer, end.finish) == ("one two three four ", e.FinishReason.LENGTH)

    async def test_the_setting_bounds_it(self, host_of: OpenHost) -> None:
        more = "[turn]\nmax_length_continuations = 0"
        host = await host_of(chained('default = { length = "Once upon " }', more=more))
        seen = await follow(host, await start(host, "a"))
        assert only(seen, e.RunCompleted)[0].answer == "Once upon "

    @pytest.mark.parametrize("streaming", [True, False], ids=["watched", "waited for"])
    async def test_a_repeated_beginning_is_dropped(self, host_of: OpenHost, streaming: bool) -> None:
        """CHAIN-14: the rule of the seam, whatever the answer was cut by."""
        host = await host_of(chained(script('{ length = "Once upon " }', '{ text = "Once upon a time." }')))
        seen = await follow(host, await start(host, "a", streaming=streaming))
        assert heard(seen) == ("Once upon a time." if streaming else "")
        assert only(seen, e.RunCompleted)[0].answer == "Once upon a time."

    async def test_a_continuation_that_adds_nothing_is_empty(self, host_of: OpenHost) -> None:
        """CLASS: it shares the retry of the step."""
        says_it_again = script(*['{ length = "Once upon " }'] * 2, '{ text = "a time." }')
        host = await host_of(chained(says_it_again))
        seen = await follow(host, await start(host, "a"))
        assert [one.failure_class for one in only(seen, e.ModelCallFailed)] == [FailureClass.EMPTY]
        assert only(seen, e.RunCompleted)[0].answer == "Once upon a time."

    @pytest.mark.parametrize("streaming", [True, False], ids=["watched", "waited for"])
    async def test_another_link_carries_on_when_the_continuation_fails(
        self, host_of: OpenHost, streaming: bool
    ) -> None:
        """CHAIN-9: the chain applies in continuation rounds as in the first call."""
        first = script('{ length = "Once upon " }', DOWN)
        host = await host_of(chained(first, 'default = { text = "a time." }'))
        seen = await follow(host, await start(host, "a", streaming=streaming))
        assert called(seen) == ["p1", "p1", "p2"]
        assert heard(seen) == ("Once upon a time." if streaming else "")
        assert only(seen, e.RunCompleted)[0].answer == "Once upon a time."

    @pytest.mark.parametrize("said", ["it was.", "Once upon a time it was."])
    async def test_a_continuation_that_is_cut_is_carried_on_by_the_next_link(
        self, host_of: OpenHost, said: str
    ) -> None:
        """CHAIN-14: nothing twice, if that one begins again from the start."""
        first = script('{ length = "Once upon " }', '{ chunks = ["a ", "time ", "it"], cut_after = 2 }')
        recover = 'stream_recovery = "continue"'
        host = await host_of(chained(first, f'default = {{ text = "{said}" }}', agent=recover))
        seen = await follow(host, await start(host, "a", streaming=True))
        assert heard(seen) == only(seen, e.RunCompleted)[0].answer == "Once upon a time it was."

    async def test_a_chain_that_is_exhausted_in_a_continuation_says_so(self, host_of: OpenHost) -> None:
        """CHAIN-10: never relabelled as truncation."""
        first = script('{ length = "Once upon " }', DOWN)
        host = await host_of(chained(first, f"default = {DOWN}"))
        (failed,) = only(await follow(host, await start(host, "a")), e.RunFailed)
        assert (failed.error_type, failed.refunded) == ("chain_exhausted", True)

    async def test_in_restart_mode_the_next_link_begins_anew(self, host_of: OpenHost) -> None:
        """CHAIN-6: nobody has seen the beginning."""
        first = script('{ length = "Once upon " }', DOWN)
        restart = 'fallback_mode = "restart"'
        host = await host_of(chained(first, 'default = { text = "All anew." }', agent=restart))
        seen = await follow(host, await start(host, "a"))
        assert only(seen, e.RunCompleted)[0].answer == "All anew."


class TestDeliverableTool:
    """CHAIN-9: a tool that the turn must have called."""

    FILES = '{ tool_call = { name = "file" } }'
    AGENT = 'tools = ["file"]\ndeliverable_tool = "file"'

    @tool(effect="write")
    def file() -> str:
        """File it."""
        return "filed"

    async def test_a_turn_without_it_is_told_so_and_goes_on(self, host_of: OpenHost) -> None:
        model = script('{ text = "Done." }', self.FILES, '{ text = "Filed." }')
        host = await host_of(chained(model, agent=self.AGENT), tools=(self.file,))
        seen = await follow(host, await start(host, "a"))
        (nudge,) = only(seen, e.TurnNudged)
        assert nudge.missing == "no call of the tool file has succeeded"
        assert only(seen, e.RunCompleted)[0].answer == "Filed."

    async def test_the_model_reads_what_is_missing(self, host_of: OpenHost) -> None:
        model = script('{ text = "Done." }', self.FILES) + "\ndefault = { echo = true }"
        host = await host_of(chained(model, agent=self.AGENT), tools=(self.file,))
        seen = await follow(host, await start(host, "a"))
        assert only(seen, e.RunCompleted)[0].answer == only(seen, e.TurnNudged)[0].message

    async def test_a_turn_that_stays_without_it_fails(self, host_of: OpenHost) -> None:
        host = await host_of(chained('default = { text = "Done." }', agent=self.AGENT), tools=(self.file,))
        seen = await follow(host, await start(host, "a"))
        assert called(seen) == ["p1", "p1"]
        (failed,) = only(seen, e.RunFailed)
        assert failed.error_type == "missing_deliverable"
        assert "no call of the tool file has succeeded" in failed.error

    async def test_a_call_that_failed_does_not_count(self, host_of: OpenHost) -> None:
        @tool(name="file", effect="write")
        def broken() -> str:
            """Fail."""
            raise OSError("disk full")

        model = script(self.FILES, '{ text = "Done." }', '{ text = "Done!" }')
        host = await host_of(chained(model, agent=self.AGENT), tools=(broken,))
        assert kinds(await follow(host, await start(host, "a"))).count("TurnNudged") == 1

    async def test_a_call_that_the_input_tells_of_does_not_count(self, host_of: OpenHost) -> None:
        host = await host_of(chained('default = { text = "Done." }', agent=self.AGENT), tools=(self.file,))
        history = (
            UserMessage(content="File it."),
            AssistantMessage(tool_calls=(ToolCall(id="c1", name="file", arguments="{}"),)),
            ToolMessage(tool_call_id="c1", content="filed"),
            UserMessage(content="And again."),
        )
        seen = await follow(host, await start(host, "a", messages=history))
        assert only(seen, e.RunFailed)[0].error_type == "missing_deliverable"


class TestSchema:
    """CHAIN-9: a schema that the answer must meet, and a bounded repair."""

    async def test_an_answer_that_meets_it_is_the_answer(self, host_of: OpenHost) -> None:
        host = await host_of(chained("default = { text = '{\"id\": 7}' }", agent=SCHEMA))
        seen = await follow(host, await start(host, "a"))
        assert json.loads(only(seen, e.RunCompleted)[0].answer) == {"id": 7}
        assert "TurnNudged" not in kinds(seen)

    @pytest.mark.parametrize("first", ["It is 7.", "{}"], ids=["no JSON", "not as it should be"])
    async def test_another_is_repaired_once_told_what_is_wrong(self, host_of: OpenHost, first: str) -> None:
        model = script(f"{{ text = '{first}' }}", "{ text = '{\"id\": 7}' }")
        host = await host_of(chained(model, agent=SCHEMA))
        seen = await follow(host, await start(host, "a"))
        assert len(only(seen, e.TurnNudged)) == 1
        assert only(seen, e.RunCompleted)[0].answer == '{"id": 7}'

    async def test_the_repair_is_bounded(self, host_of: OpenHost) -> None:
        host = await host_of(
            chained("default = { text = '{}' }", agent=SCHEMA, more="[turn]\nmax_nudges = 2")
        )
        seen = await follow(host, await start(host, "a"))
        assert called(seen) == ["p1"] * 3
        (failed,) = only(seen, e.RunFailed)
        assert failed.error_type == "missing_deliverable"
        assert failed.error.endswith(
            "after 2 nudges: the answer does not meet its JSON schema at $: 'id' is a required property"
        )

    async def test_the_chain_applies_in_a_nudge_round(self, host_of: OpenHost) -> None:
        model = script('{ text = "It is 7." }', "{ status = 500 }", DOWN)
        host = await host_of(chained(model, "default = { text = '{\"id\": 7}' }", agent=SCHEMA))
        seen = await follow(host, await start(host, "a"))
        assert called(seen) == ["p1", "p1", "p1", "p2"]
        assert only(seen, e.RunCompleted)[0].answer == '{"id": 7}'

    async def test_a_chain_that_is_exhausted_in_a_nudge_round_says_so(self, host_of: OpenHost) -> None:
        """CHAIN-10: never relabelled as a missing deliverable."""
        model = script('{ text = "It is 7." }', DOWN)
        host = await host_of(chained(model, f"default = {DOWN}", agent=SCHEMA))
        (failed,) = only(await follow(host, await start(host, "a")), e.RunFailed)
        assert (failed.error_type, failed.refunded) == ("chain_exhausted", True)
