"""The parts of Chat Completions that an answer is read from; everything else on the wire is passed over."""

from typing import Any

import msgspec

from domain.messages import Usage


class TextPart(msgspec.Struct, gc=False):
    """Some servers give text as a list of parts; parts of other types carry no answer."""

    type: str = ""
    text: str | None = None


class Function(msgspec.Struct, gc=False):
    """A call, or a fragment of one. Some servers give the arguments as an object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class Call(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Speech(msgspec.Struct, gc=False):
    """A `message`, or a `delta` of one. `function_call` is the older form of a tool call."""

    content: str | list[TextPart] | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None
    function_call: Function | None = None
    reasoning_content: Any = None
    reasoning: Any = None

    def text(self) -> str:
        """What the reader sees of it; a refusal is an answer too."""
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content if part.type == "text")
        return f"{content or ''}{self.refusal}" if self.refusal else content or ""


class Choice(msgspec.Struct, gc=False):
    index: int | None = None
    delta: Speech | None = None
    message: Speech | None = None
    finish_reason: str | None = None
    error: Any = None


class InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class WireUsage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None

    def usage(self) -> Usage:
        """In the common terms: reasoning is part of the output. Some servers count it beside the output."""
        details, output = self.prompt_tokens_details, self.completion_tokens or 0
        cached = (details and details.cached_tokens) or self.prompt_cache_hit_tokens or 0
        reasoning = (self.completion_tokens_details and self.completion_tokens_details.reasoning_tokens) or 0
        beside = self.total_tokens == (self.prompt_tokens or 0) + output + reasoning
        return Usage(
            input_tokens=self.prompt_tokens or 0,
            output_tokens=output + reasoning if beside else output,
            cached_input_tokens=cached,
            reasoning_tokens=reasoning,
        )


class Completion(msgspec.Struct, gc=False):
    """A whole body, or one chunk of a stream."""

    choices: list[Choice] | None = None
    usage: WireUsage | None = None
    error: Any = None
    object: Any = None


decode_completion = msgspec.json.Decoder(Completion).decode
