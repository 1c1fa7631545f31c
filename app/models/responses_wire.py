"""The parts of OpenAI's Responses that an answer is read from; everything else on the wire is passed over."""

from typing import Any

import msgspec

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


class InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class ResponseUsage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None

    def usage(self) -> Usage:
        cached, reasoning = self.input_tokens_details, self.output_tokens_details
        return Usage(
            input_tokens=self.input_tokens or 0,
            output_tokens=self.output_tokens or 0,
            cached_input_tokens=(cached and cached.cached_tokens) or 0,
            reasoning_tokens=(reasoning and reasoning.reasoning_tokens) or 0,
        )


class Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class Response(msgspec.Struct, gc=False):
    """A whole response, or one at some point of its stream."""

    status: str | None = None
    error: Any = None
    incomplete_details: Incomplete | None = None
    output: list[msgspec.Raw] | None = None
    usage: ResponseUsage | None = None


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
