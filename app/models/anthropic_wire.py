"""The parts of Anthropic's Messages that an answer is read from; everything else is passed over."""

from collections.abc import Mapping
from typing import Any

import msgspec

from app.models.counts import count, counts_in
from domain.messages import Usage


def usage_of(counts: Mapping[str, Any]) -> Usage:
    """Usage in the common terms, where cached input is part of the input and not beside it."""
    cached = count(counts.get("cache_read_input_tokens"))
    written = count(counts.get("cache_creation_input_tokens"))
    details = counts_in(counts.get("output_tokens_details"))
    return Usage(
        input_tokens=count(counts.get("input_tokens")) + written + cached,
        output_tokens=count(counts.get("output_tokens")),
        cached_input_tokens=cached,
        reasoning_tokens=count(details.get("thinking_tokens")),
    )


class Reply(msgspec.Struct, gc=False):
    """A whole message, or its head in `message_start`."""

    type: str = ""
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    usage: Any = None


class Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: Any = None
    stop_reason: str | None = None


class MessagesEvent(msgspec.Struct, gc=False):
    """Any event of a stream; `type` says which of these it has."""

    type: str = ""
    index: int | None = None
    message: Reply | None = None
    content_block: dict[str, Any] | None = None
    delta: Delta | None = None
    usage: Any = None


decode_event = msgspec.json.Decoder(MessagesEvent).decode
decode_reply = msgspec.json.Decoder(Reply).decode
