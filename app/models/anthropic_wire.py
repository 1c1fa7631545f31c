"""The parts of Anthropic's Messages that an answer is read from; everything else is passed over."""

from typing import Any

import msgspec

from domain.messages import Usage


class OutputDetails(msgspec.Struct, gc=False):
    thinking_tokens: int | None = None


class MessagesUsage(msgspec.Struct, gc=False):
    """Counts are of the whole answer so far; input that a cache took part in stands beside the input."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None

    def over(self, earlier: "MessagesUsage | None") -> "MessagesUsage":
        """These counts, and the earlier ones where these are silent."""
        if earlier is None:
            return self
        return MessagesUsage(
            **{
                field: value if (value := getattr(self, field)) is not None else getattr(earlier, field)
                for field in self.__struct_fields__
            }
        )

    def usage(self) -> Usage:
        """In the common terms, where cached input is part of the input."""
        cached, details = self.cache_read_input_tokens or 0, self.output_tokens_details
        return Usage(
            input_tokens=(self.input_tokens or 0) + (self.cache_creation_input_tokens or 0) + cached,
            output_tokens=self.output_tokens or 0,
            cached_input_tokens=cached,
            reasoning_tokens=(details and details.thinking_tokens) or 0,
        )


class Reply(msgspec.Struct, gc=False):
    """A whole message, or its head in `message_start`."""

    type: str = ""
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    usage: MessagesUsage | None = None


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
    usage: MessagesUsage | None = None


decode_event = msgspec.json.Decoder(MessagesEvent).decode
decode_reply = msgspec.json.Decoder(Reply).decode
