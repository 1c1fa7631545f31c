"""Anthropic's Messages."""

from collections.abc import Mapping
from typing import Any

import msgspec
from yarl import URL

from app.models.anthropic_request import body_of
from app.models.anthropic_wire import Delta, MessagesEvent, Reply, decode_event, decode_reply, usage_of
from app.models.counts import counts_in
from app.models.endpoint import Endpoint
from app.models.http import Post
from app.models.kept_blocks import keep
from app.models.port import ModelCallError, ModelReply, ModelRequest
from app.models.replies import FILTERED, reply_of
from app.models.sse import SseEvent
from app.models.tool_calls import unique_ids
from app.models.transcript import arguments_object
from app.models.wire_errors import WireError, failure_reported, read_error
from domain.failure import CallFailure, FailureKind
from domain.messages import ToolCall

DEFAULT_MAX_TOKENS = 4096
"""This wire insists on a limit, and every model takes this one."""

_LENGTH = frozenset({"max_tokens", "model_context_window_exceeded"})
_PLAIN = frozenset({"text", "tool_use"})
_STRAY_ARGUMENTS = CallFailure(kind=FailureKind.UNREADABLE, message="arguments of no tool call")


class MessagesDialect:
    """How an Anthropic server wants to be spoken to. `max_tokens` has the limits that models declare."""

    def __init__(
        self, provider: str, endpoint: Endpoint, *, max_tokens: Mapping[str, int] | None = None
    ) -> None:
        self._provider = provider
        self._endpoint = endpoint
        self._url = URL(endpoint.versioned("messages"))
        self._max_tokens = max_tokens or {}

    def post(self, request: ModelRequest, *, stream: bool) -> Post:
        max_tokens = self._max_tokens.get(request.model, DEFAULT_MAX_TOKENS)
        body = body_of(self._provider, request, stream=stream, max_tokens=max_tokens)
        return self._endpoint.post(self._url, body, stream=stream)

    def stream(self, request: ModelRequest) -> "MessagesStream":
        return MessagesStream(self._provider, request.model)

    def read_body(self, request: ModelRequest, body: bytes) -> ModelReply:
        whole = decode_reply(body)
        if whole.content is None:
            if error := read_error(body):
                raise ModelCallError(failure_reported(error))
            raise msgspec.ValidationError("neither a message nor an error")
        answer = MessagesStream(self._provider, request.model)
        answer.take_whole(whole)
        return answer.reply()


class MessagesStream:
    """An Anthropic answer being put together, block by block."""

    def __init__(self, provider: str, model: str) -> None:
        self.begun = False
        self.done = False
        self.stop_reason: str | None = None
        self._provider = provider
        self._model = model
        self._text: list[str] = []
        self._blocks: list[_Block] = []
        self._at: dict[int, _Block] = {}
        """The block that an index means: the last that was opened there. Some servers number all alike."""
        self._misnumbered = False
        """Whether the indexes of arguments have turned out to mean nothing."""
        self._usage: dict[str, Any] = {}
        """Each count is of the whole answer so far."""

    @property
    def finished(self) -> bool:
        return self.stop_reason is not None

    def read(self, event: SseEvent) -> str:
        seen = decode_event(event.data)
        if seen.type == "error" or event.name == b"error":
            raise ModelCallError(failure_reported(read_error(event.data) or WireError()))
        if seen.type == "content_block_delta" and seen.delta is not None:
            return self._take_delta(seen.index or 0, seen.delta)
        self._take_mark(seen)
        return ""

    def take_whole(self, whole: Reply) -> None:
        """A message that came in one piece."""
        self._count(whole.usage)
        self.stop_reason = whole.stop_reason or "end_turn"
        for index, given in enumerate(whole.content or ()):
            self._open(index, given)
            if given.get("type") == "text":
                self._text.append(str(given.get("text", "")))

    def reply(self) -> ModelReply:
        if self.stop_reason == "refusal":
            raise ModelCallError(FILTERED)
        given = tuple(call for block in self._blocks if (call := block.call()) is not None)
        calls = unique_ids(given)
        content = [block.whole() for block in self._blocks]
        keeps = calls == given and any(block.get("type") not in _PLAIN for block in content)
        return reply_of(
            "".join(self._text),
            calls,
            length=self.stop_reason in _LENGTH,
            usage=usage_of(self._usage),
            blocks=keep(self._provider, self._model, content) if keeps else None,
        )

    def _take_mark(self, event: MessagesEvent) -> None:
        """An event that says where the answer is, not what it says."""
        if event.type == "message_start" and event.message is not None:
            self._count(event.message.usage)
        elif event.type == "content_block_start":
            self._open(event.index or 0, event.content_block or {})
        elif event.type == "message_delta":
            self.stop_reason = (event.delta and event.delta.stop_reason) or self.stop_reason
            self._count(event.usage)
        elif event.type == "message_stop":
            self.done = True

    def _take_delta(self, index: int, delta: Delta) -> str:
        self._block_for(index, delta).add(delta)
        self.begun = self.begun or bool(delta.text or delta.partial_json or delta.thinking)
        if not delta.text:
            return ""
        self._text.append(delta.text)
        return delta.text

    def _count(self, told: Any) -> None:
        """Newer counts take the place of the earlier ones, which stand where these are silent."""
        self._usage |= {name: number for name, number in counts_in(told).items() if number is not None}

    def _open(self, index: int, opened: dict[str, Any]) -> "_Block":
        block = self._at[index] = _Block(opened)
        self._blocks.append(block)
        return block

    def _block_for(self, index: int, delta: Delta) -> "_Block":
        """The block that a delta goes on with. Arguments at an index without a call are the last call's.

        A call that lost them would be made all the same, without any.
        """
        block = self._at.get(index)
        if not delta.partial_json:
            return block or self._open(index, {"type": "text", "text": ""})
        if block is not None and block.takes_arguments and not self._misnumbered:
            return block
        self._misnumbered = True
        calling = (block for block in reversed(self._blocks) if block.takes_arguments)
        if (last := next(calling, None)) is None:
            raise ModelCallError(_STRAY_ARGUMENTS)
        return last


class _Block:
    """One block of content: as it was opened, and what was added since."""

    def __init__(self, opened: dict[str, Any]) -> None:
        self._opened = opened
        self._added: dict[str, list[Any]] = {}

    @property
    def takes_arguments(self) -> bool:
        return str(self._opened.get("type")).endswith("tool_use")

    def add(self, delta: Delta) -> None:
        for field in ("text", "partial_json", "thinking", "signature", "citation"):
            if (piece := getattr(delta, field)) is not None:
                self._added.setdefault(field, []).append(piece)

    def whole(self) -> dict[str, Any]:
        """The block as an unstreamed answer has it."""
        block = dict(self._opened)
        for field, pieces in self._added.items():
            if field == "citation":
                block["citations"] = [*(block.get("citations") or ()), *pieces]
            elif field == "partial_json":
                block["input"] = arguments_object("".join(pieces))
            else:
                block[field] = str(block.get(field) or "") + "".join(pieces)
        return block

    def call(self) -> ToolCall | None:
        """The tool call that it is, with the arguments as the model wrote them."""
        if self._opened.get("type") != "tool_use":
            return None
        written = "".join(self._added.get("partial_json", ()))
        return ToolCall(
            id=str(self._opened.get("id") or ""),
            name=str(self._opened.get("name") or ""),
            arguments=written or msgspec.json.encode(self._opened.get("input") or {}).decode(),
        )
