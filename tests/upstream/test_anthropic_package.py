"""The upstream is true to the wire: Anthropic's own package reads what it serves."""

from collections.abc import Awaitable, Callable

import anthropic
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message, MessageParam, ThinkingBlock, ToolUseBlock

from tests.upstream.answers import CLOCK, WEATHER
from tests.upstream.server import Upstream

ASK: list[MessageParam] = [{"role": "user", "content": "Hello?"}]


def client(upstream: Upstream) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=upstream.url, api_key="k", max_retries=0, timeout=5)


async def streamed(ai: AsyncAnthropic, model: str) -> Message:
    async with ai.messages.stream(model=model, max_tokens=9, messages=ASK) as stream:
        return await stream.get_final_message()


async def whole(ai: AsyncAnthropic, model: str) -> Message:
    return await ai.messages.create(model=model, max_tokens=9, messages=ASK)


@pytest.mark.parametrize("ask", [streamed, whole])
async def test_thoughts_text_and_calls_are_read(
    ask: Callable[[AsyncAnthropic, str], Awaitable[Message]],
) -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        message = await ask(ai, "thinker")
    thought, text, *calls = message.content
    assert isinstance(thought, ThinkingBlock)
    assert (thought.thinking, thought.signature) == ("Hmm.", "c2lnbmF0dXJl")
    assert text.type == "text"
    assert text.text == "Let me look."
    assert [(c.id, c.name, c.input) for c in calls if isinstance(c, ToolUseBlock)] == [
        (WEATHER.id, WEATHER.name, {"city": "Paris"}),
        (CLOCK.id, CLOCK.name, {"zone": "UTC"}),
    ]
    assert message.stop_reason == "tool_use"
    assert message.usage.cache_read_input_tokens == 3
    assert message.usage.output_tokens == 5


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("400", anthropic.BadRequestError),
        ("401", anthropic.AuthenticationError),
        ("404", anthropic.NotFoundError),
        ("429-after-1", anthropic.RateLimitError),
        ("500", anthropic.InternalServerError),
        ("529", anthropic.InternalServerError),
    ],
)
async def test_statuses_are_read(model: str, kind: type[anthropic.APIStatusError]) -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        with pytest.raises(kind):
            await whole(ai, model)


@pytest.mark.parametrize("model", ["reports-overload", "reports-late"])
async def test_an_error_inside_of_a_stream_is_read(model: str) -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await streamed(ai, model)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] in ("overloaded_error", "api_error")
