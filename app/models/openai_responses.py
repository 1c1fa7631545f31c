"""OpenAI's Responses, and every server that speaks the same."""

import msgspec
from yarl import URL

from app.models.endpoint import Endpoint
from app.models.http import Post
from app.models.kept_blocks import keep
from app.models.port import ModelCallError, ModelReply, ModelRequest
from app.models.replies import FILTERED, reply_of
from app.models.responses_request import body_of
from app.models.responses_wire import (
    Item,
    Response,
    ResponseEvent,
    decode_event,
    decode_item,
    decode_response,
    usage_of,
)
from app.models.sse import SseEvent
from app.models.tool_calls import unique_ids
from app.models.wire_errors import WireError, error_in, failure_reported, read_error
from domain.messages import ToolCall

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_SPOKEN = frozenset({"response.output_text.delta", "response.refusal.delta"})
_UNFINISHED = frozenset({"failed", "cancelled"})


class ResponsesDialect:
    """How one Responses server wants to be spoken to."""

    def __init__(self, provider: str, endpoint: Endpoint, *, instructions_role: str = "system") -> None:
        self._provider = provider
        self._endpoint = endpoint
        self._url = URL(f"{endpoint.base}/responses")
        self._instructions_role = instructions_role

    def post(self, request: ModelRequest, *, stream: bool) -> Post:
        body = body_of(self._provider, request, stream=stream, instructions_role=self._instructions_role)
        return self._endpoint.post(self._url, body, stream=stream)

    def stream(self, request: ModelRequest) -> "ResponsesStream":
        return ResponsesStream(self._provider, request.model)

    def read_body(self, request: ModelRequest, body: bytes) -> ModelReply:
        response = decode_response(body)
        if response.status is None and response.output is None:
            if error := read_error(body):
                raise ModelCallError(failure_reported(error))
            raise msgspec.ValidationError("neither a response nor an error")
        answer = ResponsesStream(self._provider, request.model)
        answer.end(response)
        return answer.reply()


class ResponsesStream:
    """A Responses answer being put together."""

    def __init__(self, provider: str, model: str) -> None:
        self.begun = False
        self._provider = provider
        self._model = model
        self._text: list[str] = []
        self._items: list[msgspec.Raw] = []
        self._arguments: dict[str | None, str] = {}
        """Of calls, by their items. Some servers leave them out of the item."""
        self._response: Response | None = None

    @property
    def finished(self) -> bool:
        return self._response is not None

    @property
    def done(self) -> bool:
        return self._response is not None

    def read(self, event: SseEvent) -> str:
        if event.data.startswith(b"[DONE]"):
            return ""
        seen = decode_event(event.data)
        if seen.type == "error" or event.name == b"error" or not seen.type:
            raise ModelCallError(failure_reported(read_error(event.data) or WireError()))
        if seen.type in _ENDS:
            return self.end(seen.response or Response())
        if seen.type == "response.output_item.done":
            self._items.append(msgspec.Raw(bytes(seen.item)))
            return ""
        if seen.type == "response.function_call_arguments.done" and isinstance(seen.arguments, str):
            self._arguments[seen.item_id] = seen.arguments
        return self._take_delta(seen)

    def end(self, response: Response) -> str:
        """The response is over; return the text of it that did not come in deltas."""
        if response.error or response.status in _UNFINISHED:
            error = error_in({"error": response.error}) or WireError(code=response.status)
            raise ModelCallError(failure_reported(error))
        self._response = response
        if response.output:
            self._items = response.output
        sent, whole = "".join(self._text), "".join(item.text() for item in self._parsed())
        rest = whole[len(sent) :] if whole.startswith(sent) else ""
        self._text.append(rest)
        return rest

    def reply(self) -> ModelReply:
        response = self._response or Response()
        why = response.incomplete_details.reason if response.incomplete_details else None
        if why == "content_filter":
            raise ModelCallError(FILTERED)
        items = self._parsed()
        given = tuple(self._call(item) for item in items if item.type == "function_call")
        calls = unique_ids(given)
        keeps = calls == given and any(item.type == "reasoning" for item in items)
        return reply_of(
            "".join(self._text),
            calls,
            length=response.status == "incomplete",
            usage=usage_of(response.usage),
            blocks=keep(self._provider, self._model, self._items) if keeps else None,
        )

    def _take_delta(self, event: ResponseEvent) -> str:
        if not isinstance(event.delta, str) or not event.delta:
            return ""
        self.begun = True
        if event.type not in _SPOKEN:
            return ""
        self._text.append(event.delta)
        return event.delta

    def _parsed(self) -> list[Item]:
        return [decode_item(item) for item in self._items]

    def _call(self, item: Item) -> ToolCall:
        arguments = item.arguments or self._arguments.get(item.id) or "{}"
        return ToolCall(id=item.call_id or "", name=item.name or "", arguments=arguments)
