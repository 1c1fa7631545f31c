"""A transcript that was made on one provider is one that every other accepts (CHAIN-15)."""

import json
from typing import Any

import msgspec
import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.http import HttpSession
from app.models.port import ModelAdapter, ModelReply, ToolSpec
from app.models.provider_settings import ProviderSettings, ProviderType
from domain.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from tests.models.calling import asking
from tests.models.conftest import WIRES, adapter_of
from tests.models.wire_rules import CHECKS
from tests.upstream.gemini import SIGNATURE
from tests.upstream.server import Upstream

TOOL = ToolSpec(name="get_weather", description="The weather.", parameters={"type": "object"})
QUESTION = (SystemMessage(content="Be brief."), UserMessage(content="Weather and time?"))
BROKEN = AssistantMessage(tool_calls=(ToolCall(id="call weather!", name="get_weather", arguments="{oops"),))
KEEPING: tuple[ProviderType, ...] = ("openai_responses", "anthropic", "google")
"""The wires on which a model wants back what it wrote."""

PRIVATE = ("Hmm.", "c2lnbmF0dXJl", "ZW5jcnlwdGVk", "thoughtSignature", "provider_blocks")
"""What only the provider that wrote it may see again."""


async def turn_on(kind: ProviderType, upstream: Upstream, http: HttpSession) -> tuple[Message, ...]:
    """A turn of two steps on this provider: it thinks, speaks and calls two tools, one of which fails."""
    reply = await adapter_of(kind, upstream.url, http).complete(asking("thinker", messages=QUESTION))
    first, second = reply.message.tool_calls
    return (
        *QUESTION,
        reply.message,
        ToolMessage(tool_call_id=first.id, content="sunny"),
        ToolMessage(tool_call_id=second.id, content="the clock is broken", failed=True),
        # Ids repeat between steps on some servers, and some models write arguments that are no JSON.
        msgspec.structs.replace(reply.message, content="", provider_blocks=None),
        ToolMessage(tool_call_id=first.id, content="rain"),
        ToolMessage(tool_call_id=second.id, content=""),
        BROKEN,
        ToolMessage(tool_call_id=BROKEN.tool_calls[0].id, content="bad arguments", failed=True),
    )


async def sent(adapter: ModelAdapter, upstream: Upstream, messages: tuple[Message, ...]) -> dict[str, Any]:
    """The body that goes out for these messages."""
    await adapter.complete(asking("text", messages=messages, tools=(TOOL,)))
    return upstream.log.of("text")[-1].body


@pytest.mark.parametrize("reader", WIRES.values())
@pytest.mark.parametrize("writer", WIRES.values())
async def test_what_one_wrote_every_other_accepts(
    writer: ProviderType, reader: ProviderType, upstream: Upstream, http: HttpSession
) -> None:
    """CHAIN-15: no foreign blocks, valid ids that never repeat, arguments in objects, a result per call."""
    messages = await turn_on(writer, upstream, http)
    other = adapter_of(reader, upstream.url, http, name="backup")
    body = await sent(other, upstream, messages)
    calls, results = CHECKS[reader](body)
    assert [name for _, name, _ in calls] == ["get_weather", "get_time"] * 2 + ["get_weather"]
    assert calls[-1][2] == {"malformed_arguments": "{oops"}
    assert calls[0][2] == {"city": "Paris"}
    assert results == [call_id for call_id, _, _ in calls]
    text = json.dumps(body).replace("skip_thought_signature_validator", "")
    assert not any(private in text for private in PRIVATE if private != "thoughtSignature")
    assert reader == "google" or "thoughtSignature" not in text


@pytest.mark.parametrize("kind", KEEPING)
async def test_what_a_model_wrote_it_is_given_back_word_for_word(
    kind: ProviderType, upstream: Upstream, http: HttpSession
) -> None:
    """CHAIN-15: signatures and encrypted reasoning in their places, and never to another model."""
    adapter = adapter_of(kind, upstream.url, http)
    for reply in (await last_of(adapter, "thinker"), await adapter.complete(asking("thinker"))):
        first, second = reply.message.tool_calls
        messages = (
            *QUESTION,
            reply.message,
            ToolMessage(tool_call_id=first.id, content="sunny"),
            ToolMessage(tool_call_id=second.id, content="noon"),
        )
        await adapter.complete(asking("thinker", messages=messages))
        assert own_content(kind, upstream.log.of("thinker")[-1].body) == WRITTEN[kind]
        own, other = (
            json.dumps(each.body)
            for each in (upstream.log.of("thinker")[-1], await other_model(adapter, upstream, messages))
        )
        secret = "ZW5jcnlwdGVk" if kind == "openai_responses" else SIGNATURE
        assert secret in own
        assert secret not in other


@pytest.mark.parametrize("kind", KEEPING)
async def test_another_provider_of_the_same_type_is_another_provider(
    kind: ProviderType, upstream: Upstream, http: HttpSession
) -> None:
    """CHAIN-15: what is encrypted for one account means nothing to the next."""
    reply = await adapter_of(kind, upstream.url, http).complete(asking("thinker"))
    messages = (UserMessage(content="Hi"), reply.message)
    await adapter_of(kind, upstream.url, http, name="backup").complete(asking("thinker", messages=messages))
    body = json.dumps(upstream.log.of("thinker")[-1].body)
    assert not any(private in body for private in PRIVATE if private != "thoughtSignature")


@pytest.mark.parametrize("kind", KEEPING)
async def test_what_was_written_for_another_key_is_not_given_back(
    kind: ProviderType, upstream: Upstream, http: HttpSession
) -> None:
    """CHAIN-15: what is encrypted for one customer of a provider can be read by no other."""
    base_url = f"{upstream.url}/v1" if kind.startswith("openai") else upstream.url
    settings = ProviderSettings(type=kind, base_url=base_url)
    shared, own = (build(Account("primary", tenant), settings, http, {}) for tenant in ("", "acme"))
    reply = await shared.complete(asking("thinker", messages=QUESTION))
    results = tuple(ToolMessage(tool_call_id=c.id, content="sunny") for c in reply.message.tool_calls)
    messages: tuple[Message, ...] = (*QUESTION, reply.message, *results)
    for adapter in (shared, own):
        await adapter.complete(asking("thinker", messages=messages))
    again, other = (json.dumps(attempt.body) for attempt in upstream.log.of("thinker")[1:])
    private = [secret for secret in PRIVATE if secret in again and secret != "thoughtSignature"]
    assert private
    assert not any(secret in other for secret in private)


@pytest.mark.parametrize("kind", KEEPING)
async def test_ids_never_repeat_even_where_content_is_given_back_word_for_word(
    kind: ProviderType, upstream: Upstream, http: HttpSession
) -> None:
    """CHAIN-15."""
    adapter = adapter_of(kind, upstream.url, http)
    reply = (await adapter.complete(asking("thinker"))).message
    first, second = reply.tool_calls
    step = (
        reply,
        ToolMessage(tool_call_id=first.id, content="sunny"),
        ToolMessage(tool_call_id=second.id, content="noon", failed=True),
    )
    await adapter.complete(asking("thinker", messages=(UserMessage(content="Hi"), *step, *step)))
    body = upstream.log.of("thinker")[-1].body
    if kind == "google":
        assert len(body["contents"]) == 5, "ids are the model's own affair there"
    else:
        calls, results = CHECKS[kind](body)
        assert results == [call_id for call_id, _, _ in calls]
        assert len(set(results)) == 4


async def other_model(adapter: ModelAdapter, upstream: Upstream, messages: tuple[Message, ...]) -> Any:
    await adapter.complete(asking("text", messages=messages))
    return upstream.log.of("text")[-1]


async def last_of(adapter: ModelAdapter, model: str) -> ModelReply:
    """The reply of a streamed call."""
    async for part in adapter.stream(asking(model)):
        last = part
    assert isinstance(last, ModelReply)
    return last


@pytest.mark.parametrize("kind", WIRES.values())
async def test_usage_is_the_same_on_every_wire(
    kind: ProviderType, upstream: Upstream, http: HttpSession
) -> None:
    """Cached input is part of the input, reasoning part of the output, wherever a wire puts them."""
    adapter = adapter_of(kind, upstream.url, http)
    usage = Usage(input_tokens=7, output_tokens=5, cached_input_tokens=3, reasoning_tokens=2)
    assert (await adapter.complete(asking("tools"))).usage == usage
    assert (await last_of(adapter, "tools")).usage == usage


@pytest.mark.parametrize("kind", WIRES.values())
@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(
            (AssistantMessage(content="Hello."), UserMessage(content="Hi")), id="begins with an answer"
        ),
        pytest.param((UserMessage(content="Go on"), AssistantMessage(content="Once upon \n")), id="prefill"),
        pytest.param((UserMessage(content="a"), UserMessage(content="b")), id="two questions"),
        pytest.param(
            (UserMessage(content="a"), AssistantMessage(), UserMessage(content="b")), id="empty answer"
        ),
        pytest.param((SystemMessage(content="Only instructions."),), id="no question"),
    ],
)
async def test_odd_conversations_keep_to_the_rules_of_the_wire(
    kind: ProviderType, messages: tuple[Message, ...], upstream: Upstream, http: HttpSession
) -> None:
    """CHAIN-15."""
    body = await sent(adapter_of(kind, upstream.url, http), upstream, messages)
    CHECKS[kind](body)


def own_content(kind: ProviderType, body: dict[str, Any]) -> Any:
    """What stands where the model's own reply was."""
    match kind:
        case "anthropic":
            return next(turn["content"] for turn in body["messages"] if turn["role"] == "assistant")
        case "google":
            return next(turn["parts"] for turn in body["contents"] if turn["role"] == "model")
        case _:
            return [
                item
                for item in body["input"]
                if item.get("type") in ("reasoning", "message", "function_call")
            ]


def _gemini_call(call_id: str, name: str, **arguments: str) -> dict[str, Any]:
    return {
        "functionCall": {"id": call_id, "name": name, "args": arguments},
        "thoughtSignature": SIGNATURE,
    }


WRITTEN: dict[ProviderType, Any] = {
    "anthropic": [
        {"type": "thinking", "thinking": "Hmm.", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_weather01", "name": "get_weather", "input": {"city": "Paris"}},
        {"type": "tool_use", "id": "call_clock0001", "name": "get_time", "input": {"zone": "UTC"}},
    ],
    "google": [
        {"text": "Let me look."},
        _gemini_call("call_weather01", "get_weather", city="Paris"),
        _gemini_call("call_clock0001", "get_time", zone="UTC"),
    ],
    "openai_responses": [
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ZW5jcnlwdGVk"},
        {
            "id": "item_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []}],
        },
        {
            "id": "fc_call_weather01",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_weather01",
            "name": "get_weather",
            "arguments": '{"city": "Paris"}',
        },
        {
            "id": "fc_call_clock0001",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_clock0001",
            "name": "get_time",
            "arguments": '{"zone": "UTC"}',
        },
    ],
}


async def test_gemini_gets_its_own_ids_back_with_the_results(upstream: Upstream, http: HttpSession) -> None:
    """CHAIN-15."""
    adapter = adapter_of("google", upstream.url, http)
    reply = await adapter.complete(asking("thinker"))
    results = tuple(ToolMessage(tool_call_id=call.id, content="x") for call in reply.message.tool_calls)
    await adapter.complete(asking("thinker", messages=(*QUESTION, reply.message, *results)))
    parts = upstream.log.of("thinker")[-1].body["contents"][-1]["parts"]
    assert [part["functionResponse"]["id"] for part in parts] == ["call_weather01", "call_clock0001"]
