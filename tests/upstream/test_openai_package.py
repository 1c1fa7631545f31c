"""The upstream is true to the wire: OpenAI's own package reads what it serves."""

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

from tests.upstream.answers import CLOCK, WEATHER
from tests.upstream.server import Upstream

ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello?"}]


def client(upstream: Upstream) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0, timeout=5)


async def test_answers_are_read_streamed_and_whole() -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        text, usage = "", None
        stream = await ai.chat.completions.create(
            model="text", messages=ASK, stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            usage = chunk.usage or usage
        whole = await ai.chat.completions.create(model="text", messages=ASK)
    assert text == whole.choices[0].message.content == "Hello there you."
    assert usage == whole.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 3


async def test_tool_calls_are_read_streamed_and_whole() -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        async with ai.chat.completions.stream(model="tools", messages=ASK) as stream:
            streamed = (await stream.get_final_completion()).choices[0]
        whole = (await ai.chat.completions.create(model="tools", messages=ASK)).choices[0]
    for choice in (streamed, whole):
        assert choice.finish_reason == "tool_calls"
        assert [
            (call.id, call.function.name, call.function.arguments)
            for call in choice.message.tool_calls or ()
            if call.type == "function"
        ] == [(c.id, c.name, c.arguments) for c in (WEATHER, CLOCK)]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("400", openai.BadRequestError),
        ("401", openai.AuthenticationError),
        ("404", openai.NotFoundError),
        ("429-after-1", openai.RateLimitError),
        ("500", openai.InternalServerError),
        ("503", openai.InternalServerError),
        ("no-such-model", openai.NotFoundError),
    ],
)
async def test_statuses_are_read(model: str, kind: type[openai.APIStatusError]) -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        with pytest.raises(kind) as caught:
            await ai.chat.completions.create(model=model, messages=ASK)
    assert caught.value.code
    if model == "429-after-1":
        assert caught.value.response.headers["retry-after"] == "1"


@pytest.mark.parametrize("model", ["reports-500", "reports-late"])
async def test_an_error_inside_of_a_stream_is_read(model: str) -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        stream = await ai.chat.completions.create(model=model, messages=ASK, stream=True)
        with pytest.raises(openai.APIError) as caught:
            async for _ in stream:
                pass
    assert caught.value.code == "server_error"


@pytest.mark.parametrize("model", ["reset", "silent"])
async def test_a_lost_connection_is_one(model: str) -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        with pytest.raises(openai.APIConnectionError):
            await ai.with_options(timeout=0.3).chat.completions.create(model=model, messages=ASK)
        await upstream.log.only(model).ended.wait()


async def test_responses_are_read_streamed_and_whole() -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        async with ai.responses.stream(model="thinker", input="Hello?") as stream:
            streamed = await stream.get_final_response()
        whole = await ai.responses.create(model="thinker", input="Hello?")
    for response in (streamed, whole):
        thought, _, *calls = response.output
        assert thought.type == "reasoning"
        assert thought.encrypted_content == "ZW5jcnlwdGVk"
        assert response.output_text == "Let me look."
        assert [(c.call_id, c.name, c.arguments) for c in calls if c.type == "function_call"] == [
            (c.id, c.name, c.arguments) for c in (WEATHER, CLOCK)
        ]
        assert response.usage is not None
        assert response.usage.input_tokens_details.cached_tokens == 3


async def test_every_event_of_a_streamed_response_is_one_that_the_package_knows() -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        stream = await ai.responses.create(model="thinker", input="Hello?", stream=True)
        seen = [event.type async for event in stream]
    assert seen[0] == "response.created"
    assert seen[-1] == "response.completed"
    assert {"response.output_text.delta", "response.function_call_arguments.done"} <= set(seen)


async def test_an_error_inside_of_a_streamed_response_is_an_event_of_its_own() -> None:
    async with Upstream() as upstream, client(upstream) as ai:
        stream = await ai.responses.create(model="reports-500", input="Hello?", stream=True)
        last = [event async for event in stream][-1]
    assert last.type == "error"
    assert last.code == "server_error"
