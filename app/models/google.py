"""Gemini's generateContent."""

from typing import Any
from urllib.parse import quote

import msgspec
from yarl import URL

from app.models.endpoint import Endpoint
from app.models.google_request import body_of
from app.models.google_wire import Candidate, Generated, decode_generated, usage_of
from app.models.http import Post
from app.models.kept_blocks import keep
from app.models.port import ModelCallError, ModelReply, ModelRequest
from app.models.replies import FILTERED, reply_of
from app.models.sse import SseEvent
from app.models.tool_calls import unique_ids
from app.models.wire_errors import WireError, error_in, failure_reported, read_error
from domain.messages import ToolCall, Usage

_FILTERED = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"}
)
_MALFORMED = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "MALFORMED_RESPONSE",
    }
)


class GeminiDialect:
    """How a Gemini server wants to be spoken to."""

    def __init__(self, provider: str, endpoint: Endpoint) -> None:
        self._provider = provider
        self._endpoint = endpoint

    def post(self, request: ModelRequest, *, stream: bool) -> Post:
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        model = quote(request.model.removeprefix("models/"), safe="")
        url = URL(f"{self._endpoint.versioned('models', 'v1beta')}/{model}:{verb}", encoded=True)
        return self._endpoint.post(url, body_of(self._provider, request), stream=stream)

    def stream(self, request: ModelRequest) -> "GeminiStream":
        return GeminiStream(self._provider, request.model)

    def read_body(self, request: ModelRequest, body: bytes) -> ModelReply:
        generated = decode_generated(body)
        answer = GeminiStream(self._provider, request.model)
        answer.take(generated)
        if generated.candidates is None and answer.finish_reason is None:
            raise msgspec.ValidationError("neither candidates nor an error")
        answer.finish_reason = answer.finish_reason or "STOP"  # the body is whole, whatever it says
        return answer.reply()


class GeminiStream:
    """A Gemini answer being put together. Only its first candidate is read: nobody asks for more."""

    def __init__(self, provider: str, model: str) -> None:
        self.begun = False
        self.finish_reason: str | None = None
        self.done = False
        self._provider = provider
        self._model = model
        self._text: list[str] = []
        self._parts: list[dict[str, Any]] = []
        self._usage: Usage | None = None

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None

    def read(self, event: SseEvent) -> str:
        if event.name == b"error":
            raise ModelCallError(failure_reported(read_error(event.data) or WireError()))
        return self.take(decode_generated(event.data))

    def take(self, generated: Generated) -> str:
        """Take in a chunk, or a whole body; return its text."""
        if generated.error:
            raise ModelCallError(failure_reported(error_in({"error": generated.error}) or WireError()))
        if generated.prompt_feedback is not None and generated.prompt_feedback.block_reason:
            self.finish_reason = "PROHIBITED_CONTENT"
        text = ""
        for candidate in generated.candidates or ():
            if not candidate.index:
                text += self._take_candidate(candidate)
        if generated.usage_metadata is not None:
            self._usage = usage_of(generated.usage_metadata)
            self.done = self.finished
        return text

    def reply(self) -> ModelReply:
        if self.finish_reason in _FILTERED:
            raise ModelCallError(FILTERED)
        if self.finish_reason in _MALFORMED:
            raise ModelCallError(failure_reported(WireError(code=self.finish_reason)))
        calls = (_call(part["functionCall"]) for part in self._parts if "functionCall" in part)
        signed = any("thoughtSignature" in part or _has_id(part) for part in self._parts)
        return reply_of(
            "".join(self._text),
            unique_ids(calls),
            length=self.finish_reason == "MAX_TOKENS",
            usage=self._usage or Usage(),
            blocks=keep(self._provider, self._model, self._parts) if signed else None,
        )

    def _take_candidate(self, candidate: Candidate) -> str:
        if candidate.finish_reason:
            self.finish_reason = candidate.finish_reason
        text = ""
        for part in (candidate.content and candidate.content.parts) or ():
            text += self._take_part(part)
        return text

    def _take_part(self, part: dict[str, Any]) -> str:
        text = part.get("text")
        said = text if isinstance(text, str) else ""
        self.begun = self.begun or bool(said) or "functionCall" in part
        if part.get("thought"):
            return ""  # a summary for people; it need not be given back
        self._keep_part(part)
        if said:
            self._text.append(said)
        return said

    def _keep_part(self, part: dict[str, Any]) -> None:
        """Plain text goes on where the last part left off; everything else stays a part of its own."""
        last = self._parts[-1] if self._parts else None
        if last is not None and last.keys() == part.keys() == {"text"}:
            last["text"] += part["text"]
        elif part != {"text": ""}:
            self._parts.append(dict(part))


def _has_id(part: dict[str, Any]) -> bool:
    call = part.get("functionCall")
    return isinstance(call, dict) and bool(call.get("id"))


def _call(call: dict[str, Any]) -> ToolCall:
    return ToolCall(
        id=str(call.get("id") or ""),
        name=str(call.get("name") or ""),
        arguments=msgspec.json.encode(call.get("args") or {}).decode(),
    )
