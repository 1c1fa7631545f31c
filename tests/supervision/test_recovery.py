"""An answer that is cut in the middle, and the link that carries it on (CHAIN-14)."""

from typing import Any

import pytest

from app.supervision.model_request import GO_ON
from domain import events as e
from domain.agent import AgentDefinition, Link, StreamRecovery
from domain.messages import AssistantMessage
from tests.hosts import OpenHost, chained, follow, kinds, only, start
from tests.supervision import models as models
from tests.supervision.conftest import OpenWall
from tests.supervision.one_database import database as database
from tests.supervision.walls import Wall, provider
from tests.upstream.server import Upstream
from tracon import tool

RECOVER = 'stream_recovery = "continue"'
CUT = 'default = { text = "Hello there ", cut_after = 2 }'
REST = 'default = { text = "you." }'
DOWN = 'default = { status = { status = 503, message = "down" } }'


async def on_wall(
    wall_of: OpenWall,
    upstream: Upstream,
    *links: str,
    prefill: bool = False,
    family: str = "chat",
    **more: Any,
) -> tuple[Wall, list[e.Recorded[e.Event]]]:
    """A watched run of an agent whose links are these models, each at a provider of its own: p1 and so on."""
    known = {"supports_prefill": prefill, "supports_tools": True}
    providers = {
        f"p{number}": provider(
            family, upstream, f"p{number}", models={link: known}, timeouts={"stream_idle": 0.3}
        )
        for number, link in enumerate(links, 1)
    }
    first, *rest = (Link(provider=f"p{number}", model=link) for number, link in enumerate(links, 1))
    agent = AgentDefinition(
        name="a",
        provider=first.provider,
        model=first.model,
        fallbacks=tuple(rest),
        stream_recovery=StreamRecovery.CONTINUE,
        **more,
    )
    wall = await wall_of(providers=providers, agents=(agent,))
    return wall, await follow(wall.host, await start(wall.host, "a", "Hello?", streaming=True))


def heard(seen: list[e.Recorded[e.Event]]) -> str:
    return "".join(delta.text for delta in only(seen, e.TextDelta))


@pytest.mark.parametrize("fault", ["cut-2", "stall-2", "terminator-without-finish"])
async def test_the_next_link_is_told_to_go_on_where_the_answer_broke_off(
    wall_of: OpenWall, upstream: Upstream, fault: str
) -> None:
    """CHAIN-14, CHAIN-11: by instruction; the client sees one answer, and the record who gave which part."""
    wall, seen = await on_wall(wall_of, upstream, fault, "says-the-rest")
    (attempt,) = wall.attempts("p2", "says-the-rest")
    assert attempt.body["messages"] == [
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Hello there "},
        {"role": "user", "content": GO_ON},
    ]
    assert heard(seen) == "Hello there you."
    (end,) = only(seen, e.RunCompleted)
    assert (end.answer, end.fallbacks_taken) == ("Hello there you.", (Link(provider="p1", model=fault),))
    (replied,) = only(seen, e.ModelReplied)
    assert (replied.provider, replied.message.content) == ("p2", "Hello there you.")


@pytest.mark.parametrize("family", ["chat", "messages"])
async def test_a_model_that_takes_a_prefill_is_given_the_beginning_as_its_own(
    wall_of: OpenWall, upstream: Upstream, family: str
) -> None:
    """CHAIN-14: without the white space at its end, which providers refuse."""
    wall, seen = await on_wall(wall_of, upstream, "cut-2", "says-the-rest", prefill=True, family=family)
    (attempt,) = wall.attempts("p2", "says-the-rest")
    last = attempt.body["messages"][-1]
    content = last["content"] if family == "chat" else last["content"][0]["text"]
    assert (last["role"], content) == ("assistant", "Hello there")
    assert heard(seen) == "Hello there you."


@pytest.mark.parametrize("prefill", [True, False])
async def test_white_space_is_nothing_to_go_on_from(
    wall_of: OpenWall, upstream: Upstream, prefill: bool
) -> None:
    """CHAIN-14: the next link is asked as if nothing had been said, and what was told stays told."""
    first, second = "says-nothing-much-and-is-cut", "says-the-rest"
    wall, seen = await on_wall(wall_of, upstream, first, second, prefill=prefill)
    (attempt,) = wall.attempts("p2", second)
    assert attempt.body["messages"] == [{"role": "user", "content": "Hello?"}]
    assert heard(seen) == only(seen, e.RunCompleted)[0].answer == "\n you."


async def test_a_model_that_begins_again_is_not_heard_twice(wall_of: OpenWall, upstream: Upstream) -> None:
    """CHAIN-14: a repeated prefix is dropped."""
    _, seen = await on_wall(wall_of, upstream, "cut-2", "begins-again")
    assert heard(seen) == "Hello there you."
    assert only(seen, e.RunCompleted)[0].answer == "Hello there you."


async def test_an_answer_may_be_carried_on_more_than_once(wall_of: OpenWall, upstream: Upstream) -> None:
    """CHAIN-14."""
    wall, seen = await on_wall(wall_of, upstream, "cut-2", "says-a-word-and-is-cut", "says-the-rest")
    (attempt,) = wall.attempts("p3", "says-the-rest")
    assert attempt.body["messages"][1] == {"role": "assistant", "content": "Hello there my "}
    assert heard(seen) == only(seen, e.RunCompleted)[0].answer == "Hello there my you."


async def test_a_prefill_that_is_refused_leaves_the_answer_cut(wall_of: OpenWall, upstream: Upstream) -> None:
    """CHAIN-14, CHAIN-7: if it cannot be had, rule 7."""
    _, seen = await on_wall(wall_of, upstream, "cut-2", "takes-no-prefill", prefill=True)
    (failed,) = only(seen, e.RunFailed)
    assert failed.error_type == "stream_error"
    assert failed.error.startswith("provider p1 broke off in the middle of its answer")
    assert "prefill is not supported for this model" in failed.error
    assert heard(seen) == "Hello there "


async def test_without_recovery_no_other_link_is_called(host_of: OpenHost) -> None:
    """CHAIN-7: the default. What was delivered is never replayed, and stays on record."""
    host = await host_of(chained(CUT, REST))
    seen = await follow(host, await start(host, "a", streaming=True))
    assert [call.provider for call in only(seen, e.ModelCallStarted)] == ["p1"]
    assert only(seen, e.RunFailed)[0].error_type == "stream_error"
    assert heard(seen) == "Hello there "


@pytest.mark.parametrize("second", [DOWN, "default = { status = 401 }", "default = { empty = true }"])
async def test_an_answer_that_nobody_carries_on_is_cut_and_the_chain_not_exhausted(
    host_of: OpenHost, second: str
) -> None:
    """CHAIN-14, CHAIN-7, CHAIN-10: the cause is the cut, and nothing is refunded."""
    host = await host_of(chained(CUT, second, agent=RECOVER))
    seen = await follow(host, await start(host, "a", streaming=True))
    (failed,) = only(seen, e.RunFailed)
    assert (failed.error_type, failed.refunded) == ("stream_error", False)
    assert failed.error.startswith("provider p1 broke off in the middle of its answer")
    assert "p2/m failed" in failed.error
    assert "ChainExhausted" not in kinds(seen)


async def test_the_link_that_carries_on_has_its_retry(host_of: OpenHost) -> None:
    """CHAIN-2, CHAIN-14."""
    flaky = f"script = [{{ status = 500 }}]\n{REST}"
    host = await host_of(chained(CUT, flaky, agent=RECOVER))
    seen = await follow(host, await start(host, "a", streaming=True))
    assert [call.provider for call in only(seen, e.ModelCallStarted)] == ["p1", "p2", "p2"]
    assert heard(seen) == only(seen, e.RunCompleted)[0].answer == "Hello there you."


async def test_a_cut_in_the_held_back_repetition_is_no_cut_of_what_was_told(host_of: OpenHost) -> None:
    """CHAIN-14: the second link had only repeated what was said when it broke off, so it is tried again."""
    repeats = 'script = [{ text = "Hello there", cut_after = 2 }]\ndefault = { text = "Hello there you." }'
    host = await host_of(chained(CUT, repeats, agent=RECOVER))
    seen = await follow(host, await start(host, "a", streaming=True))
    assert [call.provider for call in only(seen, e.ModelCallStarted)] == ["p1", "p2", "p2"]
    assert [failed.failure.content_delivered for failed in only(seen, e.ModelCallFailed)] == [True, False]
    assert heard(seen) == "Hello there you."


async def test_tools_that_the_carried_on_answer_asks_for_are_called(host_of: OpenHost) -> None:
    """CHAIN-14, CHAIN-6."""

    @tool(effect="read")
    def look() -> str:
        """Look."""
        return "seen"

    look_up, tell = (
        '{ tool_call = { name = "look", id = "c1" } }',
        '{ last_tool_result = "I have {result} it." }',
    )
    second = f"default = [{look_up}, {tell}]"
    host = await host_of(chained(CUT, second, agent=f'{RECOVER}\ntools = ["look"]'), tools=(look,))
    seen = await follow(host, await start(host, "a", streaming=True))
    first, last = only(seen, e.ModelReplied)
    assert (first.message.content, first.message.tool_calls[0].id) == ("Hello there ", "c1")
    assert last.message == AssistantMessage(content="I have seen it.")
    assert only(seen, e.RunCompleted)[0].answer == "I have seen it."


async def test_in_restart_mode_a_begun_answer_is_carried_on_and_not_begun_again(host_of: OpenHost) -> None:
    """CHAIN-6, CHAIN-7, CHAIN-14: also by a third link, when the second cannot."""
    host = await host_of(chained(CUT, DOWN, REST, agent=f'{RECOVER}\nfallback_mode = "restart"'))
    seen = await follow(host, await start(host, "a", streaming=True))
    assert [switch.restarted for switch in only(seen, e.ModelFallbackUsed)] == [False, False]
    assert heard(seen) == only(seen, e.RunCompleted)[0].answer == "Hello there you."


async def test_where_nobody_watches_there_is_nothing_to_carry_on(host_of: OpenHost) -> None:
    """CHAIN-7: nothing was delivered, so the call is made again like any that broke."""
    host = await host_of(chained(f'script = [{{ text = "Hello there ", cut_after = 2 }}]\n{REST}', REST))
    seen = await follow(host, await start(host, "a"))
    assert [call.provider for call in only(seen, e.ModelCallStarted)] == ["p1", "p1"]
    assert only(seen, e.RunCompleted)[0].answer == "you."


@pytest.mark.parametrize("recover", [True, False])
async def test_text_that_was_shown_live_and_is_cut_stays_on_record(host_of: OpenHost, recover: bool) -> None:
    """CHAIN-7, EVENT-7: with its failure, since no completed message has it."""
    more = '[recording]\ndeltas = "live"'
    host = await host_of(chained(CUT, REST, agent=RECOVER if recover else "", more=more))
    seen = await follow(host, await start(host, "a", streaming=True))
    assert [failed.text for failed in only(seen, e.ModelCallFailed)] == ["Hello there "]


async def test_text_that_stands_in_deltas_is_recorded_once(host_of: OpenHost) -> None:
    """CHAIN-7."""
    host = await host_of(chained(CUT, REST))
    seen = await follow(host, await start(host, "a", streaming=True))
    assert ([failed.text for failed in only(seen, e.ModelCallFailed)], heard(seen)) == ([""], "Hello there ")


async def test_text_that_is_shown_live_is_carried_on_too(host_of: OpenHost) -> None:
    """CHAIN-14, EVENT-7."""
    host = await host_of(chained(CUT, REST, agent=RECOVER, more='[recording]\ndeltas = "live"'))
    seen = await follow(host, await start(host, "a", streaming=True))
    assert heard(seen) == ""
    assert only(seen, e.ModelReplied)[0].message.content == "Hello there you."
