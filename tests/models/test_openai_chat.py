"""Chat Completions: what is made of the answers that servers really give."""

import json
from typing import Any

import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.endpoint import Endpoint
from app.models.http import HttpSession
from app.models.openai_chat import ChatDialect
from app.models.port import ModelAdapter, ModelCallError, ModelReply, ModelRequest
from app.models.provider_settings import ProviderSettings
from app.models.sse import SseEvent
from domain.events import FinishReason
from domain.failure import FailureKind
from domain.messages import Usage, UserMessage
from tests.models.calling import asking, completed, streamed
from tests.models.conftest import KEY
from tests.upstream.server import Upstream

ASKED = ModelRequest(model="m", messages=())
DIALECT = ChatDialect(Endpoint(base="http://localhost/v1"))


def whole(**answer: Any) -> ModelReply:
    return DIALECT.read_body(ASKED, json.dumps(answer).encode())


def message(finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": finish}]}


def read(*chunks: dict[str, Any]) -> ModelReply:
    stream = DIALECT.stream(ASKED)
    for chunk in chunks:
        stream.read(SseEvent(b"", json.dumps(chunk).encode()))
    assert stream.finished
    return stream.reply()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("reason", "calls", "finish"),
    [
        ("stop", False, FinishReason.STOP),
        ("stop", True, FinishReason.TOOL_CALLS),
        ("tool_calls", True, FinishReason.TOOL_CALLS),
        ("tool_calls", False, FinishReason.STOP),
        ("function_call", True, FinishReason.TOOL_CALLS),
        ("length", False, FinishReason.LENGTH),
        ("length", True, FinishReason.LENGTH),
        ("max_tokens", False, FinishReason.LENGTH),
        ("eos", False, FinishReason.STOP),
        (None, False, FinishReason.STOP),
    ],
)
def test_finish_reasons_come_in_common_terms(reason: str | None, calls: bool, finish: FinishReason) -> None:
    call = {"id": "a", "function": {"name": "get", "arguments": "{}"}}
    assert whole(**message(reason, content="Hi", tool_calls=[call] if calls else None)).finish is finish


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 8,
                "total_tokens": 18,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 6},
            },
            Usage(input_tokens=10, output_tokens=8, cached_input_tokens=4, reasoning_tokens=6),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 8,
                "total_tokens": 24,
                "completion_tokens_details": {"reasoning_tokens": 6},
            },
            Usage(input_tokens=10, output_tokens=14, reasoning_tokens=6),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 8, "prompt_cache_hit_tokens": 3},
            Usage(input_tokens=10, output_tokens=8, cached_input_tokens=3),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": None, "prompt_tokens_details": None},
            Usage(input_tokens=10),
        ),
        (None, Usage()),
    ],
)
def test_usage_comes_in_common_terms(reported: Any, usage: Usage) -> None:
    """Cached input is part of the input, reasoning part of the output, even if a server counts it beside."""
    assert whole(**message(content="Hi"), usage=reported).usage == usage


def test_a_refusal_is_an_answer() -> None:
    assert whole(**message(content=None, refusal="I will not.")).message.content == "I will not."
    reply = read(delta(refusal="I will "), delta(refusal="not."), delta("stop"))
    assert reply.message.content == "I will not."


def test_reasoning_is_a_sign_of_life_and_no_answer() -> None:
    """CLASS-2."""
    stream, begun = DIALECT.stream(ASKED), []
    for chunk in (
        delta(role="assistant", content="", reasoning_content=""),
        delta(reasoning_content="Hmm"),
        delta("stop"),
    ):
        assert stream.read(SseEvent(b"", json.dumps(chunk).encode())) == ""
        begun.append(stream.begun)
    assert begun == [False, True, True]
    with pytest.raises(ModelCallError) as caught:
        stream.reply()
    assert caught.value.failure.kind is FailureKind.EMPTY


def test_content_in_parts_is_its_text() -> None:
    parts = [
        {"type": "thinking", "text": "Hmm"},
        {"type": "text", "text": "Hi"},
        {"type": "text", "text": "!"},
    ]
    assert whole(**message(content=parts)).message.content == "Hi!"


def test_only_the_first_choice_is_read() -> None:
    choices = [
        {"index": 1, "message": {"content": "B"}, "finish_reason": "length"},
        {"index": 0, "message": {"content": "A"}, "finish_reason": "stop"},
    ]
    reply = whole(choices=choices)
    assert (reply.message.content, reply.finish) == ("A", FinishReason.STOP)


def test_the_older_function_call_is_a_tool_call() -> None:
    reply = read(
        delta(function_call={"name": "get", "arguments": '{"x"'}),
        delta(function_call={"arguments": ":1}"}),
        delta("function_call"),
    )
    (call,) = reply.message.tool_calls
    assert (call.name, call.arguments) == ("get", '{"x":1}')


@pytest.mark.parametrize(
    ("chunk", "status", "code"),
    [
        ({"error": {"message": "no", "type": "server_error", "code": None}}, 500, "server_error"),
        ({"error": {"message": "no", "code": 429}}, 429, None),
        ({"error": {"message": "no", "code": "429"}}, 429, None),
        ({"error": {"message": "no", "type": "insufficient_quota"}}, 429, "insufficient_quota"),
        ({"error": "it broke"}, None, None),
        ({"error": True}, None, None),
        ({"object": "error", "message": "no", "type": "BadRequest", "code": 400}, 400, "BadRequest"),
        (
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 502}}]},
            502,
            None,
        ),
        ({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}, None, None),
    ],
)
def test_an_error_object_of_any_shape_is_reported(
    chunk: dict[str, Any], status: int | None, code: str | None
) -> None:
    """CLASS-4: its own code decides."""
    raw = json.dumps(chunk).encode()
    for attempt in (
        lambda: DIALECT.stream(ASKED).read(SseEvent(b"", raw)),
        lambda: DIALECT.read_body(ASKED, raw),
    ):
        with pytest.raises(ModelCallError) as caught:
            attempt()
        failure = caught.value.failure
        assert (failure.kind, failure.status, failure.code) == (FailureKind.REPORTED, status, code)


def test_an_event_named_error_is_one() -> None:
    """C6."""
    with pytest.raises(ModelCallError) as caught:
        DIALECT.stream(ASKED).read(SseEvent(b"error", b'{"type": "overloaded_error", "message": "busy"}'))
    failure = caught.value.failure
    assert (failure.kind, failure.status, failure.code) == (FailureKind.REPORTED, 529, "overloaded_error")


def test_a_call_without_a_name_is_no_answer() -> None:
    with pytest.raises(ModelCallError) as caught:
        whole(**message(tool_calls=[{"id": "a", "function": {"arguments": "{}"}}]))
    assert caught.value.failure.kind is FailureKind.UNREADABLE


async def test_the_headers_are_those_of_the_settings(upstream: Upstream, http: HttpSession) -> None:
    settings = ProviderSettings(
        type="openai",
        base_url=f"{upstream.url}/v1/",
        api_key_env="KEY",
        headers={"X-Gateway": "blue"},
        organization="org-1",
        project="proj-1",
    )
    adapter = build(Account("p"), settings, http, {"KEY": KEY})
    await streamed(adapter, asking("text"))
    headers = upstream.log.only("text").headers
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["X-Gateway"] == "blue"
    assert headers["OpenAI-Organization"] == "org-1"
    assert headers["OpenAI-Project"] == "proj-1"
    assert headers["Accept"] == "text/event-stream"


async def test_usage_and_ids_survive_the_wire(chat: ModelAdapter) -> None:
    async for part in chat.stream(asking("tools")):
        reply = part
    assert isinstance(reply, ModelReply)
    assert reply == await chat.complete(asking("tools"))
    assert reply.usage == Usage(input_tokens=7, output_tokens=5, cached_input_tokens=3, reasoning_tokens=2)
    assert [call.id for call in reply.message.tool_calls] == ["call_weather01", "call_clock0001"]


async def test_a_large_request_goes_out_like_a_small_one(chat: ModelAdapter, upstream: Upstream) -> None:
    large = asking("text", messages=(UserMessage(content="x" * 3_000_000),))
    assert (await completed(chat, large)) == (await completed(chat, asking("text")))
    assert len(upstream.log.of("text")[0].body["messages"][0]["content"]) == 3_000_000
