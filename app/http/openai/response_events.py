"""The events of a streamed response. Each has its `type` and a `sequence_number`."""

from typing import Literal

import msgspec

from app.http.openai.error_object import ApiError
from app.http.openai.response_object import OutputMessage, OutputText, ResponseObject

LifecycleType = Literal[
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
]

OutputItemType = Literal["response.output_item.added", "response.output_item.done"]
PartType = Literal["response.content_part.added", "response.content_part.done"]


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    type: LifecycleType
    sequence_number: int
    response: ResponseObject


class OutputItem(msgspec.Struct, frozen=True, kw_only=True):
    type: OutputItemType
    sequence_number: int
    output_index: int
    item: OutputMessage


class ContentPartEvent(msgspec.Struct, frozen=True, kw_only=True):
    type: PartType
    sequence_number: int
    item_id: str
    output_index: int
    content_index: int = 0
    part: OutputText


class TextDeltaEvent(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    sequence_number: int
    item_id: str
    output_index: int
    content_index: int = 0
    delta: str
    logprobs: tuple[()] = ()


class TextDoneEvent(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["response.output_text.done"] = "response.output_text.done"
    sequence_number: int
    item_id: str
    output_index: int
    content_index: int = 0
    text: str
    logprobs: tuple[()] = ()


class StreamErrorEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The stream broke off; the response itself may go on. It has the number of the last event before it."""

    type: Literal["error"] = "error"
    sequence_number: int
    code: str | None
    message: str
    param: str | None
    error: ApiError
    """Has clients raise it, who would not look at an event of this type."""


ResponseEvent = Lifecycle | OutputItem | ContentPartEvent | TextDeltaEvent | TextDoneEvent
