"""The parts of OpenAI's Responses that an answer is read from; everything else on the wire is passed over."""

from typing import Any

import msgspec

from app.models.counts import count, counts_in
from domain.messages import Usage


class Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class Item(msgspec.Struct, gc=False):
    """One item of the output: a message, a function call, reasoning, or something of no interest."""

    type: str = ""
    id: str | None = None
    content: Any = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None

    def text(self) -> str:
        """What the reader sees of it; a refusal is an answer too."""
        if self.type != "message" or not isinstance(self.content, list):
            return ""
        parts = msgspec.convert(self.content, list[Part])
        return "".join(part.text or part.refusal or "" for part in parts)


def usage_of(told: Any) -> Usage:
    """Usage in the common terms."""
    counts = counts_in(told)
    return Usage(
        input_tokens=count(counts.get("input_tokens")),
        output_tokens=count(counts.get("output_tokens")),
        cached_input_tokens=count(counts_in(counts.get("input_tokens_details")).get("cached_tokens")),
        reasoning_tokens=count(counts_in(counts.get("output_tokens_details")).get("reasoning_tokens")),
    )


class Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class Response(msgspec.Struct, gc=False):
    """A whole response, or one at some point of its stream."""

    status: str | None = None
    error: Any = None
    incomplete_details: Incomplete | None = None
    output: list[msgspec.Raw] | None = None
    usage: Any = None


class ResponseEvent(msgspec.Struct, gc=False):
    """Any event of a stream; `type` says which of these it has."""

    type: str = ""
    delta: Any = None
    item_id: str | None = None
    arguments: Any = None
    item: msgspec.Raw = msgspec.Raw()
    response: Response | None = None


decode_event = msgspec.json.Decoder(ResponseEvent).decode
decode_response = msgspec.json.Decoder(Response).decode
decode_item = msgspec.json.Decoder(Item).decode
