"""The parts of Gemini's generateContent that an answer is read from; everything else is passed over."""

from typing import Any

import msgspec

from app.models.counts import count, counts_in
from domain.messages import Usage


class WireStruct(msgspec.Struct, rename="camel", gc=False):
    """Gemini spells its fields in camel case."""


class Content(WireStruct, gc=False):
    parts: list[dict[str, Any]] | None = None


class Candidate(WireStruct, gc=False):
    index: int | None = None
    content: Content | None = None
    finish_reason: str | None = None


class Feedback(WireStruct, gc=False):
    block_reason: str | None = None


def usage_of(told: Any) -> Usage:
    """Usage in the common terms. Cached content is part of the prompt, thoughts are beside the candidates."""
    counts = counts_in(told)
    thoughts = count(counts.get("thoughtsTokenCount"))
    return Usage(
        input_tokens=count(counts.get("promptTokenCount")) + count(counts.get("toolUsePromptTokenCount")),
        output_tokens=count(counts.get("candidatesTokenCount")) + thoughts,
        cached_input_tokens=count(counts.get("cachedContentTokenCount")),
        reasoning_tokens=thoughts,
    )


class Generated(WireStruct, gc=False):
    """A whole body, or one chunk of a stream."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: Any = None
    error: Any = None


decode_generated = msgspec.json.Decoder(Generated).decode
