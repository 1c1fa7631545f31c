"""Chat Completions: OpenAI, and every server that speaks the same."""

import re
from urllib.parse import quote

import msgspec
from yarl import URL

from app.models.endpoint import Endpoint
from app.models.http import Post
from app.models.openai_request import body_of
from app.models.openai_wire import Choice, Completion, Speech, decode_completion, usage_of
from app.models.port import ModelCallError, ModelReply, ModelRequest
from app.models.replies import FILTERED, reply_of
from app.models.sse import SseEvent
from app.models.tool_calls import ToolCallAssembly
from app.models.wire_errors import WireError, error_in, failure_reported, read_error
from domain.messages import Usage

_CALL_IDS = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
_SHORT_CALL_IDS = re.compile(r"[A-Za-z0-9]{9}", re.ASCII)
_LENGTH = frozenset({"length", "max_tokens"})


class ChatDialect:
    """How one Chat Completions server wants to be spoken to. In `url`, {model} is the model's name."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        url: str | None = None,
        instructions_role: str = "system",
        max_tokens_field: str = "max_tokens",
        stream_usage: bool = True,
        short_call_ids: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._url = url or f"{endpoint.base}/chat/completions"
        self._instructions_role = instructions_role
        self._max_tokens_field = max_tokens_field
        self._stream_usage = stream_usage
        self._call_ids = _SHORT_CALL_IDS if short_call_ids else _CALL_IDS

    def post(self, request: ModelRequest, *, stream: bool) -> Post:
        body = body_of(
            request,
            stream=stream,
            call_ids=self._call_ids,
            instructions_role=self._instructions_role,
            max_tokens_field=self._max_tokens_field,
        )
        if stream and self._stream_usage:
            body["stream_options"] = {"include_usage": True}
        url = URL(self._url.replace("{model}", quote(request.model, safe="")), encoded=True)
        return self._endpoint.post(url, body, stream=stream)

    def stream(self, request: ModelRequest) -> "ChatStream":
        return ChatStream()

    def read_body(self, request: ModelRequest, body: bytes) -> ModelReply:
        completion = decode_completion(body)
        _raise_reported(completion, body)
        answer = ChatStream()
        answer.take(completion)
        if not completion.choices:
            raise msgspec.ValidationError("a completion without choices")
        answer.finish_reason = answer.finish_reason or "stop"  # the body is whole, whatever it says
        return answer.reply()


class ChatStream:
    """A Chat Completions answer being put together. Only its first choice is read: nobody asks for more."""

    def __init__(self) -> None:
        self.begun = False
        self.finish_reason: str | None = None
        self.done = False
        self._text: list[str] = []
        self._calls = ToolCallAssembly()
        self._usage: Usage | None = None

    @property
    def finished(self) -> bool:
        return self.finish_reason is not None

    def read(self, event: SseEvent) -> str:
        if event.data.startswith(b"[DONE]"):
            self.done = True
            return ""
        if event.name == b"error":
            raise ModelCallError(failure_reported(read_error(event.data) or WireError()))
        completion = decode_completion(event.data)
        if not completion.choices or completion.error:
            _raise_reported(completion, event.data)
        return self.take(completion)

    def take(self, completion: Completion) -> str:
        """Take in a chunk, or a whole completion; return its text."""
        text = ""
        for choice in completion.choices or ():
            if not choice.index:
                text += self._take_choice(choice)
        if completion.usage is not None:
            self._usage = usage_of(completion.usage)
            self.done = self.finished
        return text

    def reply(self) -> ModelReply:
        if self.finish_reason == "content_filter":
            raise ModelCallError(FILTERED)
        return reply_of(
            "".join(self._text),
            self._calls.finished(),
            length=self.finish_reason in _LENGTH,
            usage=self._usage or Usage(),
        )

    def _take_choice(self, choice: Choice) -> str:
        if choice.error or choice.finish_reason == "error":
            error = error_in({"error": choice.error}) or WireError()
            raise ModelCallError(failure_reported(error))
        if choice.finish_reason:
            self.finish_reason = choice.finish_reason
        speech = choice.delta or choice.message
        return self._take_speech(speech) if speech is not None else ""

    def _take_speech(self, speech: Speech) -> str:
        text = speech.text()
        if text:
            self._text.append(text)
        for call in speech.tool_calls or ():
            self._calls.add(call)
        if speech.function_call is not None:
            self._calls.add_function(speech.function_call)
        if not self.begun:
            self.begun = bool(text or self._calls or speech.reasoning_content or speech.reasoning)
        return text


def _raise_reported(completion: Completion, raw: bytes) -> None:
    """Raise if this is an error object: under `error`, or as some servers have it, the whole of it."""
    if completion.error:
        raise ModelCallError(failure_reported(error_in({"error": completion.error}) or WireError()))
    if completion.object == "error":
        raise ModelCallError(failure_reported(read_error(raw) or WireError()))
