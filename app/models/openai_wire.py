"""The parts of Chat Completions that an answer is read from; everything else on the wire is passed over."""

from typing import Any

import msgspec

from app.models.counts import count, counts_in
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


def usage_of(told: Any) -> Usage:
    """Usage in the common terms: reasoning is part of the output. Some servers count it beside the output."""
    counts = counts_in(told)
    asked, output = count(counts.get("prompt_tokens")), count(counts.get("completion_tokens"))
    cached = count(counts_in(counts.get("prompt_tokens_details")).get("cached_tokens"))
    reasoning = count(counts_in(counts.get("completion_tokens_details")).get("reasoning_tokens"))
    beside = count(counts.get("total_tokens")) == asked + output + reasoning
    return Usage(
        input_tokens=asked,
        output_tokens=output + reasoning if beside else output,
        cached_input_tokens=cached or count(counts.get("prompt_cache_hit_tokens")),
        reasoning_tokens=reasoning,
    )


class Completion(msgspec.Struct, gc=False):
    """A whole body, or one chunk of a stream."""

    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None
    object: Any = None


decode_completion = msgspec.json.Decoder(Completion).decode
