"""What the next link is given: the turn so far or its input, and one ledger for both (CHAIN-5, CHAIN-6)."""

from typing import Any

import pytest

from domain import events as e
from domain.agent import AgentDefinition, FallbackMode, Link, ModelOptions
from tests.hosts import OpenHost, chained, follow, kinds, only, start
from tests.supervision.conftest import OpenWall
from tests.supervision.one_database import database as database
from tests.supervision.walls import provider
from tests.upstream.server import Upstream
from tracon import tool

DOWN = '{ status = { status = 503, message = "down" } }'
CHARGES = '{ tool_call = { name = "charge", arguments = { cents = 700 } } }'
MODES = pytest.mark.parametrize("mode", FallbackMode)


class Till:
    """Counts what was really charged."""

    def __init__(self) -> None:
        self.charged: list[int] = []
        self.keys: list[str] = []

    def as_tool(self) -> Any:
        @tool(effect="external")
        def charge(cents: int) -> str:
            """Charge the card."""
            self.charged.append(cents)
            return f"charge {len(self.charged)}"

        return charge


@MODES
async def test_a_tool_that_completed_before_a_fallback_ran_once(
    host_of: OpenHost, mode: FallbackMode
) -> None:
    """CHAIN-6: the next link asks for the very same call, and reads the recorded result."""
    till = Till()
    first = f"script = [{CHARGES}, {DOWN}]"
    second = f'default = [{CHARGES}, {{ last_tool_result = "It was {{result}}." }}]'
    second_continued = f'script = [{CHARGES}]\ndefault = {{ last_tool_result = "It was {{result}}." }}'
    links = (first, second if mode is FallbackMode.RESTART else second_continued)
    host = await host_of(
        chained(*links, agent=f'tools = ["charge"]\nfallback_mode = "{mode}"'), tools=(till.as_tool(),)
    )
    seen = await follow(host, await start(host, "a"))
    assert till.charged == [700]
    (answered,) = only(seen, e.ToolAnswered)
    (invoked,) = only(seen, e.ToolInvoking)
    assert (answered.output, answered.recorded_call_id) == ("charge 1", invoked.call_id)
    assert [switch.restarted for switch in only(seen, e.ModelFallbackUsed)] == [mode is FallbackMode.RESTART]
    assert only(seen, e.RunCompleted)[0].answer == "It was charge 1."


@MODES
async def test_the_same_arguments_in_another_spelling_are_the_same_call(
    host_of: OpenHost, mode: FallbackMode
) -> None:
    """CHAIN-6: models write keys in any order, numbers in any form and letters as escapes."""
    sent: list[tuple[str, int]] = []

    @tool(effect="external")
    def send(to: str, cents: float) -> str:
        """Send money."""
        sent.append((to, int(cents)))
        return f"transfer {len(sent)}"

    def call(arguments: str) -> str:
        return f"{{ tool_call = {{ name = 'send', arguments = '{arguments}' }} }}"

    sends = call('{"to": "José", "cents": 700}')
    again = call('{"cents":7.0e2,"to":"Jos\\u00e9"}')
    first = f"script = [{sends}, {DOWN}]"
    second = f'script = [{again}]\ndefault = {{ last_tool_result = "It was {{result}}." }}'
    host = await host_of(
        chained(first, second, agent=f'tools = ["send"]\nfallback_mode = "{mode}"'), tools=(send,)
    )
    seen = await follow(host, await start(host, "a"))
    assert sent == [("José", 700)]
    assert [answered.output for answered in only(seen, e.ToolAnswered)] == ["transfer 1"]
    assert only(seen, e.RunCompleted)[0].answer == "It was transfer 1."


@MODES
async def test_calls_that_ran_together_are_answered_one_by_one_in_whatever_order(
    host_of: OpenHost, mode: FallbackMode
) -> None:
    """CHAIN-6: two equal calls were two, and a third one is no new wish but a repeated one."""
    till = Till()

    def calls(*cents: int) -> str:
        listed = ", ".join(f'{{ name = "charge", arguments = {{ cents = {amount} }} }}' for amount in cents)
        return f"{{ tool_calls = [{listed}] }}"

    first = f"script = [{calls(700, 700, 50)}, {DOWN}]"
    second = f'script = [{calls(50, 700, 700, 700)}]\ndefault = {{ text = "ok" }}'
    host = await host_of(
        chained(
            first,
            second,
            agent=f'tools = ["charge"]\nfallback_mode = "{mode}"',
            more="[tool_loop]\nallow_concurrent_tool_calls = true\n",
        ),
        tools=(till.as_tool(),),
    )
    seen = await follow(host, await start(host, "a"))
    assert sorted(till.charged) == [50, 700, 700]
    ran = {one.call_id: one.output for one in only(seen, e.ToolReturned)}
    fifty, *sevens = (one.output for one in only(seen, e.ToolAnswered))
    assert fifty == next(ran[one.call_id] for one in only(seen, e.ToolInvoking) if "50" in one.arguments)
    assert [*sevens[:2]] == [ran[one.call_id] for one in only(seen, e.ToolInvoking) if "700" in one.arguments]
    assert sevens[2] == sevens[1]
    assert only(seen, e.RunCompleted)[0].answer == "ok"


@MODES
async def test_another_call_runs(host_of: OpenHost, mode: FallbackMode) -> None:
    """CHAIN-6: other arguments are another call."""
    till = Till()
    first = f"script = [{CHARGES}, {DOWN}]"
    other = CHARGES.replace("700", "800")
    second = f'script = [{other}]\ndefault = {{ text = "ok" }}'
    host = await host_of(
        chained(first, second, agent=f'tools = ["charge"]\nfallback_mode = "{mode}"'), tools=(till.as_tool(),)
    )
    seen = await follow(host, await start(host, "a"))
    assert till.charged == [700, 800]
    assert "ToolAnswered" not in kinds(seen)


async def test_a_failed_call_is_answered_with_its_failure(host_of: OpenHost) -> None:
    """CHAIN-6: it ran, and nobody knows what it did before it failed."""
    ran = 0

    @tool(name="charge", effect="external")
    def declined(cents: int) -> str:
        """Decline."""
        nonlocal ran
        ran += 1
        raise ValueError("card declined")

    links = (f"script = [{CHARGES}, {DOWN}]", f'script = [{CHARGES}]\ndefault = {{ text = "ok" }}')
    host = await host_of(chained(*links, agent='tools = ["charge"]'), tools=(declined,))
    seen = await follow(host, await start(host, "a"))
    assert ran == 1
    assert [answered.failed for answered in only(seen, e.ToolAnswered)] == [True]


async def test_a_turn_whose_beginning_was_seen_does_not_start_again(host_of: OpenHost) -> None:
    """CHAIN-7: in restart mode. It fails with the link's own error, and the other link is not called."""
    till = Till()
    says = '{ text = "Let me see.", tool_call = { name = "charge", arguments = { cents = 700 } } }'
    links = (f"script = [{says}, {DOWN}]", 'default = { text = "never" }')
    agent = 'tools = ["charge"]\nfallback_mode = "restart"'
    host = await host_of(chained(*links, agent=agent), tools=(till.as_tool(),))
    seen = await follow(host, await start(host, "a", streaming=True))
    (failed,) = only(seen, e.RunFailed)
    assert (failed.error_type, failed.refunded) == ("provider_unavailable", False)
    assert [call.provider for call in only(seen, e.ModelCallStarted)] == ["p1", "p1"]
    unseen = await host_of(chained(*links, agent=agent), tools=(till.as_tool(),))
    assert only(await follow(unseen, await start(unseen, "a")), e.RunCompleted)[0].answer == "never"


async def test_a_turn_of_which_nothing_was_seen_starts_again_although_it_is_watched(
    host_of: OpenHost,
) -> None:
    """CHAIN-7: a call of a tool is no content."""
    till = Till()
    links = (f"script = [{CHARGES}, {DOWN}]", 'default = { text = "All anew." }')
    agent = 'tools = ["charge"]\nfallback_mode = "restart"'
    host = await host_of(chained(*links, agent=agent), tools=(till.as_tool(),))
    seen = await follow(host, await start(host, "a", streaming=True))
    assert only(seen, e.RunCompleted)[0].answer == "All anew."


async def test_the_next_link_gets_the_same_request(wall_of: OpenWall, upstream: Upstream) -> None:
    """CHAIN-5: only the model's name changes, and the primary's provider settings stay behind."""

    @tool(effect="read")
    def look(where: str) -> str:
        """Look somewhere."""
        return "seen"

    known = {"supports_tools": True}
    providers = {
        name: provider("chat", upstream, name, models={model: known})
        for name, model in (("p1", "503"), ("p2", "text"))
    }
    agent = AgentDefinition(
        name="a",
        instructions="Be brief.",
        provider="p1",
        model="503",
        fallbacks=(Link(provider="p2", model="text"),),
        tools=("look",),
        options=ModelOptions(temperature=0.5, top_p=0.9, max_output_tokens=50, stop=("END",), seed=7),
        response_schema={"type": ["object", "string"]},
        provider_settings={"reasoning_effort": "high"},
    )
    wall = await wall_of(providers=providers, agents=(agent,), tools=(look,), turn={"max_nudges": 0})
    await follow(wall.host, await start(wall.host, "a"))
    (first,) = wall.attempts("p1", "503")
    (second,) = wall.attempts("p2", "text")
    settings = {"model", "stream", "stream_options", "reasoning_effort"}
    assert {key: value for key, value in first.body.items() if key not in settings} == {
        key: value for key, value in second.body.items() if key not in settings
    }
    assert (first.body["reasoning_effort"], second.body.get("reasoning_effort")) == ("high", None)
    assert {
        "messages",
        "tools",
        "temperature",
        "top_p",
        "stop",
        "seed",
        "response_format",
    } <= second.body.keys()


@pytest.mark.parametrize("watched", [True, False])
async def test_where_nobody_watches_only_a_link_that_others_stand_behind_is_streamed(
    wall_of: OpenWall, upstream: Upstream, watched: bool
) -> None:
    """CLASS-2: its silence is to be told from a long answer. The last may be one that cannot stream."""
    providers = {name: provider("chat", upstream, name) for name in ("p1", "p2")}
    agent = AgentDefinition(
        name="a", provider="p1", model="503", fallbacks=(Link(provider="p2", model="text"),)
    )
    wall = await wall_of(providers=providers, agents=(agent,))
    await follow(wall.host, await start(wall.host, "a", streaming=watched))
    (first,), (last,) = wall.attempts("p1", "503"), wall.attempts("p2", "text")
    assert (first.streamed, last.streamed) == (True, watched)


@MODES
async def test_the_next_link_reads_the_turn_so_far_or_its_input(
    wall_of: OpenWall, upstream: Upstream, mode: FallbackMode
) -> None:
    """CHAIN-6."""
    till = Till()
    first = {"type": "scripted", "models": {"m": {"script": [
        {"tool_call": {"name": "charge", "arguments": {"cents": 700}, "id": "c1"}}, {"status": 503},
    ]}}}  # fmt: skip
    second = provider("chat", upstream, "p2", models={"text": {"supports_tools": True}})
    agent = AgentDefinition(
        name="a",
        provider="p1",
        model="m",
        fallbacks=(Link(provider="p2", model="text"),),
        tools=("charge",),
        fallback_mode=mode,
    )
    wall = await wall_of(providers={"p1": first, "p2": second}, agents=(agent,), tools=(till.as_tool(),))
    await follow(wall.host, await start(wall.host, "a", "Hello?"))
    (attempt,) = wall.attempts("p2", "text")
    roles = [message["role"] for message in attempt.body["messages"]]
    assert roles == (["user"] if mode is FallbackMode.RESTART else ["user", "assistant", "tool"])
    assert till.charged == [700]
