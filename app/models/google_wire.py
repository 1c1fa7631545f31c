"""The parts of Gemini's generateContent that an answer is read from; everything else is passed over."""

from typing import Any

import msgspec

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


class UsageMetadata(WireStruct, gc=False):
    """Cached content is part of the prompt; thoughts stand beside the candidates."""

    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None

    def usage(self) -> Usage:
        thoughts = self.thoughts_token_count or 0
        return Usage(
            input_tokens=(self.prompt_token_count or 0) + (self.tool_use_prompt_token_count or 0),
            output_tokens=(self.candidates_token_count or 0) + thoughts,
            cached_input_tokens=self.cached_content_token_count or 0,
            reasoning_tokens=thoughts,
        )


class Generated(WireStruct, gc=False):
    """A whole body, or one chunk of a stream."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: UsageMetadata | None = None
    error: Any = None


decode_generated = msgspec.json.Decoder(Generated).decode
