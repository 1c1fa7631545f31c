"""Anthropic's Messages: what is asked, and what is made of its answers."""

import json
from typing import Any

import msgspec
import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.anthropic import DEFAULT_MAX_TOKENS, MessagesDialect
from app.models.endpoint import Endpoint
from app.models.http import HttpSession
from app.models.port import ModelCallError, ModelReply, ModelRequest, ToolSpec
from app.models.provider_settings import ModelSettings, ProviderSettings
from app.models.sse import SseEvent
from domain.agent import ModelOptions
from domain.events import FinishReason
from domain.failure import FailureKind
from domain.messages import AssistantMessage, SystemMessage, ToolCall, Usage, UserMessage
from tests.models.calling import asking, streamed
from tests.upstream.server import Upstream

DIALECT = MessagesDialect("primary", Endpoint(base="http://localhost"), max_tokens={"large": 64_000})
ASKED = ModelRequest(model="m", messages=(UserMessage(content="Hi"),))


def body_of(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(DIALECT.post(request, stream=False).body)
    return body


def whole(stop_reason: str | None = "end_turn", *content: dict[str, Any], **fields: Any) -> ModelReply:
    content = content or ({"type": "text", "text": "Hi"},)
    message = {"type": "message", "content": content, "stop_reason": stop_reason, **fields}
    return DIALECT.read_body(ASKED, json.dumps(message).encode())


def read(*events: dict[str, Any]) -> ModelReply:
    stream = DIALECT.stream(ASKED)
    for event in events:
        stream.read(SseEvent(event["type"].encode(), json.dumps(event).encode()))
    assert stream.finished
    return stream.reply()


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}


def test_instructions_stand_outside_of_the_conversation_and_a_limit_is_always_given() -> None:
    options = ModelOptions(temperature=0.5, top_p=0.9, max_output_tokens=99, stop=("END",), seed=7)
    tool = ToolSpec(name="get", description="It gets.", parameters={"type": "object"})
    request = ModelRequest(
        model="m",
        messages=(SystemMessage(content="Be brief."), UserMessage(content="Hi")),
        instructions="You help.",
        tools=(tool,),
        options=options,
        response_schema={"type": "string", "maxLength": 5},
        provider_settings={"model": "x", "stream": True, "messages": [], "output_config": {"effort": "low"}},
    )
    assert body_of(request) == {
        "model": "m",
        "stream": False,
        "system": "You help.\n\nBe brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "tools": [{"name": "get", "description": "It gets.", "input_schema": {"type": "object"}}],
        "output_config": {
            "effort": "low",
            "format": {"type": "json_schema", "schema": {"type": "string"}},
        },
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 99,
        "stop_sequences": ["END"],
    }


def test_a_schema_that_this_wire_cannot_hold_becomes_an_instruction() -> None:
    """CHAIN-5: the answer's form is asked for on every link, in one way or the other."""
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    body = body_of(msgspec.structs.replace(ASKED, instructions="You help.", response_schema=schema))
    assert "output_config" not in body
    assert body["system"].startswith("You help.\n\n")
    assert body["system"].endswith('{"type":"object","additionalProperties":{"type":"integer"}}')


@pytest.mark.parametrize(
    ("request_", "limit"),
    [
        (ASKED, DEFAULT_MAX_TOKENS),
        (msgspec.structs.replace(ASKED, model="large"), 64_000),
        (msgspec.structs.replace(ASKED, provider_settings={"max_tokens": 5}), 5),
    ],
)
def test_the_limit_is_the_agents_the_settings_the_models_or_one_that_all_take(
    request_: ModelRequest, limit: int
) -> None:
    assert body_of(request_)["max_tokens"] == limit
    options = ModelOptions(max_output_tokens=7)
    assert body_of(msgspec.structs.replace(request_, options=options))["max_tokens"] == 7


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("pause_turn", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        (None, FinishReason.STOP),
    ],
)
def test_finish_reasons_come_in_common_terms(reason: str | None, finish: FinishReason) -> None:
    assert whole(reason).finish is finish


def test_input_that_a_cache_took_part_in_is_input() -> None:
    counts = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100,
        "output_tokens": 8,
        "output_tokens_details": {"thinking_tokens": 6},
    }
    usage = Usage(input_tokens=125, output_tokens=8, cached_input_tokens=100, reasoning_tokens=6)
    assert whole("end_turn", usage=counts).usage == usage
    start = {"type": "message_start", "message": {"usage": counts | {"output_tokens": 1}}}
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 8, "cache_read_input_tokens": None},
    }
    assert read(start, delta(0, type="text_delta", text="Hi"), end).usage == usage


def test_an_opened_block_is_no_content_and_a_thought_is_a_sign_of_life() -> None:
    """CLASS-2."""
    stream, begun = DIALECT.stream(ASKED), []
    for event in (
        {"type": "message_start", "message": {"content": []}},
        {"type": "ping"},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "name": "f", "id": "a"},
        },
        delta(0, type="input_json_delta", partial_json=""),
        delta(0, type="thinking_delta", thinking="Hmm"),
    ):
        stream.read(SseEvent(b"", json.dumps(event).encode()))
        begun.append(stream.begun)
    assert begun == [False, False, False, False, True]


def test_a_call_without_arguments_is_a_call_with_an_empty_object() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    reply = read({"type": "content_block_start", "index": 0, "content_block": block}, END)
    assert [(call.id, call.arguments) for call in reply.message.tool_calls] == [("a", "{}")]


def test_arguments_stay_as_the_model_wrote_them() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    reply = read(
        {"type": "content_block_start", "index": 0, "content_block": block},
        delta(0, type="input_json_delta", partial_json='{"x":  1'),
        delta(0, type="input_json_delta", partial_json=", oops"),
        END,
    )
    assert reply.message.tool_calls[0].arguments == '{"x":  1, oops'


def tool_use(index: int, call_id: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": call_id, "name": "f", "input": {}}
    return {"type": "content_block_start", "index": index, "content_block": block}


def arguments(index: int, text: str) -> dict[str, Any]:
    return delta(index, type="input_json_delta", partial_json=text)


TEXT = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}


@pytest.mark.parametrize(
    "events",
    [
        (tool_use(0, "a"), arguments(0, '{"x":1}'), tool_use(0, "b"), arguments(0, '{"x":2}')),
        (TEXT, tool_use(1, "a"), arguments(0, '{"x":1}'), tool_use(2, "b"), arguments(1, '{"x":2}')),
        (TEXT, tool_use(1, "a"), arguments(2, '{"x":1}'), tool_use(2, "b"), arguments(3, '{"x":2}')),
        (
            tool_use(0, "a"),
            arguments(9, '{"x"'),
            arguments(8, ":1}"),
            tool_use(1, "b"),
            arguments(7, '{"x":2}'),
        ),
        (tool_use(0, "a"), tool_use(1, "b"), arguments(1, '{"x":2}'), arguments(0, '{"x":1}')),
    ],
    ids=["all alike", "one behind", "one ahead", "any", "right, and in turns"],
)
def test_arguments_are_their_calls_whatever_their_index(events: tuple[dict[str, Any], ...]) -> None:
    """TOOL-1: a call that lost its arguments would be made without any."""
    calls = read(*events, END).message.tool_calls
    assert [(call.id, call.arguments) for call in calls] == [("a", '{"x":1}'), ("b", '{"x":2}')]


def test_arguments_without_a_call_are_no_answer() -> None:
    stream = DIALECT.stream(ASKED)
    for event in (TEXT, delta(0, type="text_delta", text="Let me look.")):
        stream.read(SseEvent(b"", json.dumps(event).encode()))
    with pytest.raises(ModelCallError) as caught:
        stream.read(SseEvent(b"", json.dumps(arguments(1, '{"x":1}')).encode()))
    assert caught.value.failure.kind is FailureKind.UNREADABLE


def test_blank_text_beside_a_call_is_left_out() -> None:
    """CHAIN-15: this wire refuses blank text."""
    call = ToolCall(id="a", name="f", arguments="{}")
    messages = (UserMessage(content="?"), AssistantMessage(content=" \n", tool_calls=(call,)))
    content = body_of(ModelRequest(model="m", messages=messages))["messages"][1]["content"]
    assert [block["type"] for block in content] == ["tool_use"]


def test_plain_answers_keep_nothing_for_their_provider() -> None:
    """CHAIN-15: only what nobody else may read is kept apart."""
    assert whole().message.provider_blocks is None
    assert (
        whole("end_turn", {"type": "tool_use", "id": "a", "name": "f", "input": {}}).message.provider_blocks
        is None
    )


def test_redacted_thoughts_and_citations_are_kept_whole() -> None:
    """CHAIN-15."""
    reply = read(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "redacted_thinking", "data": "x"},
        },
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        delta(1, type="text_delta", text="Hi"),
        delta(1, type="citations_delta", citation={"cited_text": "c"}),
        END,
    )
    again = body_of(ModelRequest(model="m", messages=(UserMessage(content="?"), reply.message)))["messages"][
        1
    ]
    assert again["content"] == [
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Hi", "citations": [{"cited_text": "c"}]},
    ]


@pytest.mark.parametrize(
    ("kind", "status"), [("overloaded_error", 529), ("rate_limit_error", 429), ("api_error", 500)]
)
def test_an_error_event_is_reported_with_the_status_it_would_have_had(kind: str, status: int) -> None:
    """C6, CLASS-4."""
    data = json.dumps({"type": "error", "error": {"type": kind, "message": "no"}}).encode()
    for name in (b"error", b""):
        with pytest.raises(ModelCallError) as caught:
            DIALECT.stream(ASKED).read(SseEvent(name, data))
        failure = caught.value.failure
        assert (failure.kind, failure.code, failure.status) == (FailureKind.REPORTED, kind, status)


async def test_path_and_headers(upstream: Upstream, http: HttpSession) -> None:
    for base_url in (upstream.url, f"{upstream.url}/v1", f"{upstream.url}/v1/"):
        settings = ProviderSettings(
            type="anthropic",
            base_url=base_url,
            api_key_env="KEY",
            headers={"Anthropic-Version": "2099-01-01", "anthropic-beta": "x"},
            models={"text": ModelSettings(max_output_tokens=123)},
        )
        await streamed(build(Account("p"), settings, http, {"KEY": "k"}), asking("text"))
    attempts = upstream.log.of("text")
    assert [attempt.path for attempt in attempts] == ["/v1/messages"] * 3
    headers = {name.lower(): value for name, value in attempts[0].headers.items()}
    assert (headers["x-api-key"], headers["anthropic-beta"]) == ("k", "x")
    assert headers["anthropic-version"] == "2099-01-01", "the settings' own headers hold"
    assert attempts[0].body["max_tokens"] == 123
