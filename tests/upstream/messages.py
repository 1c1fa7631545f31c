"""The upstream's Anthropic Messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.upstream.family import Answer, Call, Spent
from tests.upstream.wire import json_bytes, sse

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_CODES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_THOUGHT = {"type": "thinking", "thinking": "Hmm.", "signature": "c2lnbmF0dXJl"}


class MessagesFamily:
    """Blocks are numbered in the order in which they are opened."""

    name = "messages"

    def __init__(self) -> None:
        self._blocks = 0

    def _open(self, block: Mapping[str, Any]) -> bytes:
        self._blocks += 1
        return _start(self._blocks - 1, block)

    def _last(self, **delta: Any) -> bytes:
        return _delta(self._blocks - 1, delta)

    def _close(self) -> bytes:
        return _event({"type": "content_block_stop", "index": self._blocks - 1})

    def wants_stream(self, path: str, body: Mapping[str, Any]) -> bool:
        return bool(body.get("stream"))

    def model(self, path: str, body: Mapping[str, Any]) -> str:
        return str(body["model"])

    def whole(self, model: str, answer: Answer) -> bytes:
        content: list[dict[str, Any]] = [_THOUGHT] if answer.reasoned else []
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        content += [_block(call) | {"input": json.loads(call.arguments)} for call in answer.calls]
        head = _head(model) | {"content": content, "stop_reason": _REASONS[answer.reason]}
        return json_bytes(head | {"usage": _input(answer.spent) | _output(answer.spent)})

    def preamble(self, model: str) -> list[bytes]:
        head = _head(model) | {"usage": _input(Spent()) | {"output_tokens": 1}}
        return [
            _event({"type": "message_start", "message": head}),
            _event({"type": "ping"}),
        ]

    def reasoning(self, model: str) -> list[bytes]:
        return [
            self._open({"type": "thinking", "thinking": "", "signature": ""}),
            self._last(type="thinking_delta", thinking="Hm"),
            self._last(type="thinking_delta", thinking="m."),
            self._last(type="signature_delta", signature=_THOUGHT["signature"]),
            self._close(),
        ]

    def text(self, model: str, text: str, before: str) -> bytes:
        opening = b"" if before else self._open({"type": "text", "text": ""})
        return opening + self._last(type="text_delta", text=text)

    def calls(self, model: str, calls: Sequence[Call]) -> list[bytes]:
        events: list[bytes] = []
        for call in calls:
            half = len(call.arguments) // 2
            events.append(self._open(_block(call) | {"input": {}}))
            for piece in ("", call.arguments[:half], call.arguments[half:]):
                events.append(self._last(type="input_json_delta", partial_json=piece))
            events.append(self._close())
        return events

    def finish(self, model: str, answer: Answer) -> list[bytes]:
        reason = {"stop_reason": _REASONS[answer.reason], "stop_sequence": None}
        stop = [self._close()] if answer.text and not answer.calls else []
        last = _event({"type": "message_delta", "delta": reason, "usage": _output(answer.spent)})
        return [b"".join([*stop, last])]

    def terminator(self) -> list[bytes]:
        return [_event({"type": "message_stop"})]

    def error_event(self, status: int, code: str, message: str) -> bytes:
        return b"event: error\ndata: " + self.error_body(status, code, message) + b"\n\n"

    def error_body(self, status: int, code: str, message: str) -> bytes:
        code = code if code == "gremlins" else _CODES.get(status, code)
        return json_bytes(
            {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_1"}
        )


def _event(value: dict[str, Any]) -> bytes:
    return sse(value, str(value["type"]))


def _start(index: int, block: Mapping[str, Any]) -> bytes:
    return _event({"type": "content_block_start", "index": index, "content_block": block})


def _delta(index: int, delta: Mapping[str, Any]) -> bytes:
    return _event({"type": "content_block_delta", "index": index, "delta": delta})


def _head(model: str) -> dict[str, Any]:
    return {
        "id": "msg_upstream",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _block(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _input(spent: Spent) -> dict[str, Any]:
    """What the cache took part in stands beside the input."""
    return {
        "input_tokens": spent.input - spent.cached - 1,
        "cache_read_input_tokens": spent.cached,
        "cache_creation_input_tokens": 1,
    }


def _output(spent: Spent) -> dict[str, Any]:
    return {
        "output_tokens": spent.output,
        "output_tokens_details": {"thinking_tokens": spent.reasoning},
    }
