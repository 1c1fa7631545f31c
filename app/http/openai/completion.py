"""A chat completion, whole or in chunks."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from app.http.openai.names import completion_id
from app.http.openai.run_so_far import RunSoFar
from domain.events import FinishReason
from domain.messages import Usage

Finish = Literal["stop", "length"]


class PromptTokens(msgspec.Struct, frozen=True, kw_only=True):
    cached_tokens: int = 0


class CompletionTokens(msgspec.Struct, frozen=True, kw_only=True):
    reasoning_tokens: int = 0


class CompletionUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Of all model calls of the run together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokens
    completion_tokens_details: CompletionTokens

    @classmethod
    def of(cls, usage: Usage) -> "CompletionUsage":
        return cls(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.total,
            prompt_tokens_details=PromptTokens(cached_tokens=usage.cached_input_tokens),
            completion_tokens_details=CompletionTokens(reasoning_tokens=usage.reasoning_tokens),
        )


class CompletionMessage(msgspec.Struct, frozen=True, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: tuple[()] = ()


class CompletionChoice(msgspec.Struct, frozen=True, kw_only=True):
    index: int = 0
    message: CompletionMessage
    logprobs: None = None
    finish_reason: Finish


class ChatCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """A run's answer. `model` is the agent's name."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage


class ChunkDelta(msgspec.Struct, frozen=True, kw_only=True):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    index: int = 0
    delta: ChunkDelta = ChunkDelta()
    logprobs: None = None
    finish_reason: Finish | None = None


class ChatCompletionChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a run's answer. `usage` is there when it was asked for, and null before the last chunk."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: CompletionUsage | UnsetType | None = UNSET


def completion_of(run: RunSoFar, answer: str) -> ChatCompletion:
    """The whole completion of a run that has its answer."""
    return ChatCompletion(
        id=completion_id(run.id),
        created=int(run.created_at.timestamp()),
        model=run.created.agent,
        choices=(
            CompletionChoice(message=CompletionMessage(content=answer), finish_reason=finish_reason(run)),
        ),
        usage=CompletionUsage.of(run.usage),
    )


def finish_reason(run: RunSoFar) -> Finish:
    return "length" if run.finish is FinishReason.LENGTH else "stop"
