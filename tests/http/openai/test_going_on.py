"""Responses that go on from others, and conversations: what the model is told."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai.types.responses import Response

from app.db.embedded import EmbeddedPostgres
from tests.conftest import TEMPLATE, cloned
from tests.http.openai.conftest import Host, Service, opened
from tests.upstream.attempts import AttemptLog
from tests.upstream.server import Upstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWER = "Hello there you."


class Talk:
    """One host in front of an upstream that remembers what it was sent."""

    def __init__(self, host: Host, upstream: Upstream) -> None:
        self.host = host
        self.ai = host.ai
        self._upstream = upstream

    async def say(self, text: str, after: Response | None = None, **more: Any) -> Response:
        if after is not None:
            more["previous_response_id"] = after.id
        response: Response = await self.ai.responses.create(model="parrot", input=text, **more)
        return response

    def told(self, last: str) -> list[tuple[str, str]]:
        """What the model was sent with this as the last message, the agent's instructions left out."""
        [sent] = [
            attempt.body["messages"]
            for attempt in self._upstream.log.of("text")
            if attempt.body["messages"][-1]["content"] == last
        ]
        return [(message["role"], message["content"]) for message in sent[1:]]

    def instructions(self, last: str) -> str:
        attempts = self._upstream.log.of("text")
        [sent] = [a.body["messages"] for a in attempts if a.body["messages"][-1]["content"] == last]
        return str(sent[0]["content"])


def turns(*texts: str) -> list[tuple[str, str]]:
    """Each text with its answer, but for the last."""
    asked = [[("user", text), ("assistant", ANSWER)] for text in texts]
    return [message for turn in asked for message in turn][:-1]


async def talk_of(service: Service, upstream: Upstream, **sections: Any) -> Talk:
    provider = {"type": "openai", "base_url": f"{upstream.url}/v1"}
    agent = {"name": "parrot", "provider": "up", "model": "text", "instructions": "Answer."}
    host = await service.open(providers={"up": provider}, agents={"parrot": agent}, **sections)
    return Talk(host, upstream)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream() as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_host(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory, upstream: Upstream
) -> AsyncIterator[Talk]:
    async for dsn in cloned(postgres, TEMPLATE):
        async with opened(dsn, tmp_path_factory.mktemp("host")) as service:
            yield await talk_of(service, upstream)


@pytest.fixture
def talk(one_host: Talk, upstream: Upstream) -> Talk:
    """The upstream has forgotten what others said to it."""
    upstream.log = AttemptLog()
    return one_host


async def test_a_response_goes_on_from_the_one_before(talk: Talk) -> None:
    first = await talk.say("one")
    second = await talk.say("two", first)
    third = await talk.say("three", second)
    assert talk.told("one") == turns("one")
    assert talk.told("two") == turns("one", "two")
    assert talk.told("three") == turns("one", "two", "three")
    assert third.previous_response_id == second.id


async def test_two_responses_that_go_on_from_the_same_know_nothing_of_each_other(talk: Talk) -> None:
    first = await talk.say("one")
    left = await talk.say("left", first)
    right = await talk.say("right", first)
    await talk.say("far left", left)
    await talk.say("far right", right)
    await talk.say("middle", first)
    assert talk.told("right") == turns("one", "right")
    assert talk.told("far left") == turns("one", "left", "far left")
    assert talk.told("far right") == turns("one", "right", "far right")
    assert talk.told("middle") == turns("one", "middle")


@pytest.mark.parametrize("concurrency", ["queue", "reject", "parallel"])
async def test_nor_do_those_that_go_on_at_the_same_time(
    service: Service, upstream: Upstream, concurrency: str
) -> None:
    upstream.log = AttemptLog()
    talk = await talk_of(service, upstream, sessions={"concurrency": concurrency})
    first = await talk.say("one", await talk.say("zero"))
    names = ("a", "b", "c", "d")
    after = await asyncio.gather(*(talk.say(name, first) for name in names))
    await asyncio.gather(*(talk.say(f"{name}{name}", one) for name, one in zip(names, after, strict=True)))
    for name in names:
        assert talk.told(name) == turns("zero", "one", name)
        assert talk.told(f"{name}{name}") == turns("zero", "one", name, f"{name}{name}")


async def test_one_line_of_responses_is_one_session(talk: Talk) -> None:
    response = await talk.say("one")
    sessions = []
    for text in ("two", "three", "four"):
        response = await talk.say(text, response)
        run = await talk.host.http.get(f"/tracon/api/runs/{response.id.removeprefix('resp_')}")
        sessions.append(run.body["session_id"])
    assert len(set(sessions)) == 1


async def test_any_host_goes_on_from_a_response_of_any_other(service: Service, upstream: Upstream) -> None:
    upstream.log = AttemptLog()
    talk, other = await talk_of(service, upstream), await talk_of(service, upstream)
    second = await other.say("two", await talk.say("one"))
    await talk.say("three", second)
    assert talk.told("three") == turns("one", "two", "three")


async def test_instructions_are_for_one_response_only(talk: Talk) -> None:
    first = await talk.say("one", instructions="In German.")
    await talk.say("two", first)
    assert talk.instructions("one") == "Answer.\n\nIn German."
    assert talk.instructions("two") == "Answer."
    assert talk.told("two") == turns("one", "two")


async def test_a_streamed_response_is_gone_on_from_like_any_other(talk: Talk) -> None:
    stream = await talk.ai.responses.create(model="parrot", input="one", stream=True)
    last: Any = [event async for event in stream][-1]
    await talk.say("two", last.response)
    assert talk.told("two") == turns("one", "two")


async def test_there_is_no_going_on_from_what_is_not_there(talk: Talk) -> None:
    for previous in ("resp_0", f"resp_{'0' * 32}", "x", ""):
        with pytest.raises(openai.NotFoundError) as caught:
            await talk.ai.responses.create(model="parrot", input="on", previous_response_id=previous)
        assert caught.value.code == "previous_response_not_found"
        assert caught.value.param == "previous_response_id"


async def test_there_is_no_going_on_from_what_has_no_end(service: Service, upstream: Upstream) -> None:
    """And the client does not try that again."""
    upstream.log = AttemptLog()
    talk = await talk_of(service, upstream)
    ai = talk.ai.with_options(max_retries=2)
    stream = await ai.responses.create(model="gated", input="one", stream=True)
    live: Any = await anext(stream)
    with pytest.raises(openai.ConflictError) as caught:
        await ai.responses.create(model="parrot", input="two", previous_response_id=live.response.id)
    assert caught.value.code == "previous_response_not_completed"
    await ai.responses.cancel(live.response.id)
    await stream.close()
    await talk.say("three", live.response)
    assert talk.told("three")[0] == ("user", "one")


async def test_a_conversation_has_the_turns_of_its_responses(talk: Talk) -> None:
    items: Any = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "Yes."}]
    conversation = await talk.ai.conversations.create(items=items, metadata={"ticket": "7"})
    assert conversation.metadata == {"ticket": "7"}
    first = await talk.say("one", conversation=conversation.id)
    await talk.say("two", conversation={"id": conversation.id})
    assert talk.told("two") == [("user", "before"), ("assistant", "Yes."), *turns("one", "two")]
    assert first.conversation is not None
    assert first.conversation.id == conversation.id
    assert await talk.ai.conversations.retrieve(conversation.id) == conversation


async def test_the_items_of_a_conversation_can_be_read_page_by_page(talk: Talk) -> None:
    """HTTP-2. What tools do stays with the runs."""
    conversation = await talk.ai.conversations.create()
    for text in ("one", "two"):
        await talk.ai.responses.create(model="helper", input=text, conversation=conversation.id)
    listed = talk.ai.conversations.items.list
    said = ["one", "Let me look.", "It is raining.", "two", "Let me look.", "It is raining."]
    for limit in (1, 2, 100):
        upwards = [item async for item in listed(conversation.id, order="asc", limit=limit)]
        downwards = [item async for item in listed(conversation.id, limit=limit)]
        assert [text_of(item) for item in upwards] == said
        assert downwards == upwards[::-1]
    assert [item.role for item in upwards if item.type == "message"] == ["user", "assistant", "assistant"] * 2
    assert len({item.id for item in upwards}) == 6
    page: Any = await listed(conversation.id, order="asc", limit=0)
    assert (page.first_id, page.last_id, page.has_more) == (upwards[0].id, upwards[0].id, True)


async def test_a_conversation_that_is_empty_has_no_items(talk: Talk) -> None:
    conversation = await talk.ai.conversations.create()
    assert [item async for item in talk.ai.conversations.items.list(conversation.id)] == []


async def test_a_session_of_the_other_api_is_a_conversation(talk: Talk) -> None:
    await talk.host.http.run("parrot", "one", session_id="other")
    await talk.say("two", conversation="other")
    assert talk.told("two") == turns("one", "two")
    assert (await talk.ai.conversations.retrieve("other")).metadata == {}


async def test_who_goes_on_from_a_response_of_a_conversation_does_not_add_to_it(talk: Talk) -> None:
    conversation = await talk.ai.conversations.create()
    first = await talk.say("one", conversation=conversation.id)
    await talk.say("aside", first)
    await talk.say("two", conversation=conversation.id)
    assert talk.told("aside") == turns("one", "aside")
    assert talk.told("two") == turns("one", "two")


async def test_a_conversation_that_is_not_there_is_not_begun(talk: Talk) -> None:
    for attempt in (
        talk.say("one", conversation="conv_0"),
        talk.ai.conversations.retrieve("conv_0"),
        talk.ai.conversations.items.list("conv_0"),
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            await attempt
        assert caught.value.code == "conversation_not_found"


async def test_one_history_is_enough(talk: Talk) -> None:
    first = await talk.say("one")
    with pytest.raises(openai.BadRequestError) as caught:
        await talk.say("two", first, conversation="s")
    assert caught.value.param == "previous_response_id"


def text_of(item: Any) -> str:
    return str(item.content[0].text)
