"""Usage that a provider tells strangely counts as far as it can be read, and costs no answer (CLASS-4)."""

import json
from typing import Any

import pytest

from app.models.anthropic import MessagesDialect
from app.models.dialect import Dialect
from app.models.endpoint import Endpoint
from app.models.google import GeminiDialect
from app.models.openai_chat import ChatDialect
from app.models.openai_responses import ResponsesDialect
from app.models.port import ModelReply, ModelRequest
from app.models.sse import SseEvent
from domain.messages import Usage

AT = Endpoint(base="http://localhost")
ASKED = ModelRequest(model="m", messages=())
WIRES: dict[str, tuple[Dialect, str, str]] = {
    "chat": (ChatDialect(AT), "usage", "prompt_tokens"),
    "responses": (ResponsesDialect("p", AT), "usage", "input_tokens"),
    "messages": (MessagesDialect("p", AT), "usage", "input_tokens"),
    "gemini": (GeminiDialect("p", AT), "usageMetadata", "promptTokenCount"),
}
"""Each wire, where it tells usage, and how it names the input."""
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]},
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}],
    },
    "messages": {"content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]},
}
LAST_EVENTS: dict[str, dict[str, Any]] = {
    "chat": {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]},
    "responses": {"type": "response.completed", "response": BODIES["responses"]},
    "messages": {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    "gemini": BODIES["gemini"],
}
STRANGE: list[Any] = [None, [], "many", 7, True, {}]


def whole(wire: str, told: Any) -> ModelReply:
    dialect, where, _ = WIRES[wire]
    return dialect.read_body(ASKED, json.dumps(BODIES[wire] | {where: told}).encode())


def streamed(wire: str, told: Any) -> ModelReply:
    dialect, where, _ = WIRES[wire]
    stream = dialect.stream(ASKED)
    inside = {"response": BODIES[wire] | {where: told}} if wire == "responses" else {where: told}
    last = LAST_EVENTS[wire] | inside
    if wire == "messages":
        said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
        stream.read(SseEvent(b"", json.dumps(said).encode()))
    stream.read(SseEvent(b"", json.dumps(last).encode()))
    assert stream.finished
    return stream.reply()


@pytest.mark.parametrize("told", STRANGE, ids=json.dumps)
@pytest.mark.parametrize("wire", WIRES)
def test_usage_that_is_none_costs_no_answer(wire: str, told: Any) -> None:
    for reply in (whole(wire, told), streamed(wire, told)):
        assert (reply.message.content, reply.usage) == ("Hi", Usage())


@pytest.mark.parametrize("said", ["12", [12], {"n": 12}, True, None], ids=json.dumps)
@pytest.mark.parametrize("wire", WIRES)
def test_a_count_that_is_no_number_counts_nothing(wire: str, said: Any) -> None:
    told = {WIRES[wire][2]: said, f"{WIRES[wire][2]}_details": said}
    for reply in (whole(wire, told), streamed(wire, told)):
        assert (reply.message.content, reply.usage) == ("Hi", Usage())


@pytest.mark.parametrize("wire", WIRES)
def test_a_count_with_a_fraction_is_a_count(wire: str) -> None:
    for reply in (whole(wire, {WIRES[wire][2]: 12.0}), streamed(wire, {WIRES[wire][2]: 12.0})):
        assert reply.usage == Usage(input_tokens=12)
