"""What models are asked besides the agent's turn, and shown of it, as the wire has it (CHAIN-13)."""

import asyncio
from typing import Any

import pytest

from domain import events as e
from domain.agent import AgentDefinition, Binding, Compaction, Loop
from domain.compaction import INSTRUCTIONS as SUMMARISE
from domain.criterion import INSTRUCTIONS as JUDGE
from domain.criterion import SCHEMA
from domain.events.side import SideCallStarted
from domain.ids import DEFAULT_TENANT
from domain.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from tests.hosts import follow, kinds, start
from tests.supervision import side_models as side_models
from tests.supervision.conftest import OpenWall
from tests.supervision.one_database import database as database
from tests.supervision.side_models import SUMMARY
from tests.supervision.walls import Wall, provider
from tests.upstream.server import Upstream

LONG = "The tide took the pier, and the harbour master wrote it down. " * 20
LOOK = ToolCall(id="call_look", name="look", arguments='{"at": "the pier"}')
TALK: tuple[Message, ...] = (
    SystemMessage(content="Be brief."),
    UserMessage(content="What is there?"),
    AssistantMessage(content="I look.", tool_calls=(LOOK,)),
    ToolMessage(tool_call_id=LOOK.id, content=LONG),
    AssistantMessage(content="Water."),
    UserMessage(content="And now?"),
)


async def wall_with(
    wall_of: OpenWall, upstream: Upstream, *, summarizer: str = "summarises", family: str = "chat"
) -> Wall:
    """Agent `a` says "Hello there you.", with a summarizer and a judge at providers of their own."""
    names = ("agent", "summarizer", "judge")
    agent = AgentDefinition(
        name="a",
        provider="agent",
        model="text",
        instructions="You keep the harbour.",
        compaction=Compaction(
            summarizer=Binding(provider="summarizer", model=summarizer), threshold=200, keep_recent=1
        ),
        loop=Loop(criterion="It greets.", judge=Binding(provider="judge", model="finds-it-good")),
    )
    providers = {name: provider(family, upstream, name) for name in names}
    return await wall_of(providers=providers, agents=(agent,))


async def run(wall: Wall) -> list[e.Recorded[e.Event]]:
    return await follow(wall.host, await start(wall.host, "a", messages=TALK))


def asked(wall: Wall, name: str, model: str) -> dict[str, Any]:
    (attempt,) = wall.attempts(name, model)
    return attempt.body


async def test_each_model_reads_what_it_is_to_know_and_nothing_else(
    wall_of: OpenWall, upstream: Upstream
) -> None:
    """CHAIN-13: the summarizer the older part, the agent the summary in its place, the judge what the agent
    was shown and what it said."""
    wall = await wall_with(wall_of, upstream)
    assert kinds(await run(wall))[-1] == "RunCompleted"
    summarizer = asked(wall, "summarizer", "summarises")
    system, material = summarizer["messages"]
    assert (system["content"], material["role"]) == (SUMMARISE, "user")
    assert material["content"] == (
        "[system]\nBe brief.\n\n[user]\nWhat is there?\n\n[agent]\nI look.\n\n"
        f'[agent calls the tool look]\n{{"at": "the pier"}}\n\n[result of the tool look]\n{LONG}\n\n'
        "[agent]\nWater."
    )
    assert not {"tools", "response_format"} & summarizer.keys()
    shown = asked(wall, "agent", "text")["messages"]
    assert [message["role"] for message in shown] == ["system", "system", "user", "user"]
    assert shown[1]["content"] == "Be brief."
    assert shown[2]["content"].endswith(SUMMARY)
    assert shown[3]["content"] == "And now?"
    judge = asked(wall, "judge", "finds-it-good")
    assert judge["messages"][0]["content"] == JUDGE
    assert SUMMARY in judge["messages"][1]["content"]
    assert LONG not in judge["messages"][1]["content"]
    assert judge["messages"][1]["content"].endswith("[user]\nAnd now?\n\n[agent]\nHello there you.")
    assert judge["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize("family", ["responses", "messages", "gemini"])
async def test_every_wire_has_words_for_it(wall_of: OpenWall, upstream: Upstream, family: str) -> None:
    wall = await wall_with(wall_of, upstream, family=family)
    assert kinds(await run(wall))[-2:] == ["CriterionJudged", "RunCompleted"]
    assert SUMMARY in str(asked(wall, "agent", "text"))
    assert LONG not in str(asked(wall, "agent", "text"))


async def test_a_cancel_closes_the_summarizers_connection(wall_of: OpenWall, upstream: Upstream) -> None:
    """CANCEL-3, BREAK-4: nothing follows it, and it counts for nothing."""
    wall = await wall_with(wall_of, upstream, summarizer="silent-after-preamble")
    run_id = await start(wall.host, "a", messages=TALK)
    await follow(wall.host, run_id, SideCallStarted)
    async with asyncio.timeout(30):
        while not (attempts := wall.attempts("summarizer", "silent-after-preamble")):
            await upstream.log.changed()
        await attempts[0].arrived.wait()
        await wall.host.services.runs.cancel(DEFAULT_TENANT, run_id)
        assert kinds(await follow(wall.host, run_id))[-1] == "RunCancelled"
        await attempts[0].ended.wait()
    assert attempts[0].left_at is not None
    assert wall.attempts("agent", "text") == []
    await upstream.deserted()
