"""The upstream's Chat Completions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.upstream.family import Answer, Call, Spent
from tests.upstream.wire import json_bytes, sse

_ID = "chatcmpl-upstream"


class ChatFamily:
    name = "chat"

    def wants_stream(self, path: str, body: Mapping[str, Any]) -> bool:
        return bool(body.get("stream"))

    def model(self, path: str, body: Mapping[str, Any]) -> str:
        return str(body["model"])

    def whole(self, model: str, answer: Answer) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.reasoned:
            message["reasoning_content"] = "Hmm."
        if answer.calls:
            message["tool_calls"] = [_call(call) for call in answer.calls]
        choice = {"index": 0, "message": message, "finish_reason": answer.reason, "logprobs": None}
        return json_bytes(
            _head(model, "chat.completion") | {"choices": [choice], "usage": _usage(answer.spent)}
        )

    def preamble(self, model: str) -> list[bytes]:
        return [_chunk(model, {"role": "assistant", "content": ""})]

    def reasoning(self, model: str) -> list[bytes]:
        return [_chunk(model, {"reasoning_content": "Hmm."})]

    def text(self, model: str, text: str, before: str) -> bytes:
        return _chunk(model, {"content": text})

    def calls(self, model: str, calls: Sequence[Call]) -> list[bytes]:
        return [_chunk(model, {"tool_calls": [part]}) for part in _fragments(calls)]

    def finish(self, model: str, answer: Answer) -> list[bytes]:
        head = _head(model, "chat.completion.chunk")
        return [
            _chunk(model, {}, answer.reason),
            sse(head | {"choices": [], "usage": _usage(answer.spent)}),
        ]

    def terminator(self) -> list[bytes]:
        return [b"data: [DONE]\n\n"]

    def error_event(self, status: int, code: str, message: str) -> bytes:
        return b"data: " + self.error_body(status, code, message) + b"\n\n"

    def error_body(self, status: int, code: str, message: str) -> bytes:
        return json_bytes({"error": {"message": message, "type": code, "param": None, "code": code}})


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": _ID, "object": kind, "created": 1795990902, "model": model}


def _chunk(model: str, delta: Mapping[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
    return sse(_head(model, "chat.completion.chunk") | {"choices": [choice], "usage": None})


def _call(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _fragments(calls: Sequence[Call]) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(calls):
        yield {"index": index, **_call(call), "function": {"name": call.name, "arguments": ""}}
        half = len(call.arguments) // 2
        for piece in (call.arguments[:half], call.arguments[half:]):
            yield {"index": index, "function": {"arguments": piece}}


def _usage(spent: Spent) -> dict[str, Any]:
    return {
        "prompt_tokens": spent.input,
        "completion_tokens": spent.output,
        "total_tokens": spent.input + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cached},
        "completion_tokens_details": {"reasoning_tokens": spent.reasoning},
    }
