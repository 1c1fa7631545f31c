"""The upstream's Gemini generateContent."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.upstream.family import Answer, Call, Spent
from tests.upstream.wire import json_bytes, sse

_REASONS = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY"}
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
SIGNATURE = "c2lnbmF0dXJl"


class GeminiFamily:
    name = "gemini"

    def wants_stream(self, path: str, body: Mapping[str, Any]) -> bool:
        return path.endswith(":streamGenerateContent")

    def model(self, path: str, body: Mapping[str, Any]) -> str:
        return path.rpartition("/")[2].partition(":")[0]

    def whole(self, model: str, answer: Answer) -> bytes:
        parts: list[dict[str, Any]] = [_thought()] if answer.reasoned else []
        if answer.text:
            parts.append({"text": answer.text})
        parts += [_call(call, signed=answer.reasoned) for call in answer.calls]
        return json_bytes(_chunk(model, parts, _REASONS[answer.reason], answer.spent))

    def preamble(self, model: str) -> list[bytes]:
        return [sse(_chunk(model, []))]

    def reasoning(self, model: str) -> list[bytes]:
        return [sse(_chunk(model, [_thought()]))]

    def text(self, model: str, text: str, before: str) -> bytes:
        return sse(_chunk(model, [{"text": text}]))

    def calls(self, model: str, calls: Sequence[Call]) -> list[bytes]:
        return [sse(_chunk(model, [_call(call, signed=True)])) for call in calls]

    def finish(self, model: str, answer: Answer) -> list[bytes]:
        return [sse(_chunk(model, [], _REASONS[answer.reason], answer.spent))]

    def terminator(self) -> list[bytes]:
        return []

    def error_event(self, status: int, code: str, message: str) -> bytes:
        return b"data: " + self.error_body(status, code, message) + b"\n\n"

    def error_body(self, status: int, code: str, message: str) -> bytes:
        if code == "gremlins":
            return json_bytes({"error": {"message": message, "status": code}})
        return json_bytes(
            {"error": {"code": status, "message": message, "status": _CODES.get(status, "UNKNOWN")}}
        )


def _chunk(
    model: str, parts: list[dict[str, Any]], reason: str | None = None, spent: Spent | None = None
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if reason:
        candidate["finishReason"] = reason
    chunk: dict[str, Any] = {"candidates": [candidate], "modelVersion": model, "responseId": "upstream"}
    return chunk | ({"usageMetadata": _usage(spent)} if spent else {})


def _thought() -> dict[str, Any]:
    return {"text": "Hmm.", "thought": True}


def _call(call: Call, *, signed: bool) -> dict[str, Any]:
    part = {"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}}
    return part | ({"thoughtSignature": SIGNATURE} if signed else {})


def _usage(spent: Spent) -> dict[str, Any]:
    """Thoughts stand beside the candidates."""
    return {
        "promptTokenCount": spent.input,
        "cachedContentTokenCount": spent.cached,
        "candidatesTokenCount": spent.output - spent.reasoning,
        "thoughtsTokenCount": spent.reasoning,
        "totalTokenCount": spent.input + spent.output,
    }
