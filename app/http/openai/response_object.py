"""A response as OpenAI's API has it: what became of a run, and what was asked of it."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from app.http.openai.answer_form import TextFormat
from app.http.openai.names import response_id
from app.http.openai.run_so_far import RunSoFar
from domain.events import FinishReason, RunCancelled, RunFailed, RunWaits
from domain.failure import ErrorClass
from domain.messages import Usage

Status = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
ItemStatus = Literal["in_progress", "completed", "incomplete"]
Phase = Literal["commentary", "final_answer"]

_CODE_OF_CLASS = {
    ErrorClass.QUOTA_EXCEEDED: "rate_limit_exceeded",
    ErrorClass.INVALID: "invalid_prompt",
}
"""OpenAI's set of codes is closed; the message has the rest."""


class OutputText(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="output_text"):
    text: str
    annotations: tuple[()] = ()
    logprobs: tuple[()] = ()


class OutputMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the agent said: on its way to the answer, or as the answer."""

    type: Literal["message"] = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    status: ItemStatus
    phase: Phase | UnsetType = UNSET
    content: tuple[OutputText, ...]


class InputTokens(msgspec.Struct, frozen=True, kw_only=True):
    cached_tokens: int
    cache_write_tokens: int = 0


class OutputTokens(msgspec.Struct, frozen=True, kw_only=True):
    reasoning_tokens: int


class ResponseUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Of all model calls of the run together."""

    input_tokens: int
    input_tokens_details: InputTokens
    output_tokens: int
    output_tokens_details: OutputTokens
    total_tokens: int

    @classmethod
    def of(cls, usage: Usage) -> "ResponseUsage":
        return cls(
            input_tokens=usage.input_tokens,
            input_tokens_details=InputTokens(cached_tokens=usage.cached_input_tokens),
            output_tokens=usage.output_tokens,
            output_tokens_details=OutputTokens(reasoning_tokens=usage.reasoning_tokens),
            total_tokens=usage.total,
        )


class ResponseFailure(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    message: str


class IncompleteDetails(msgspec.Struct, frozen=True, kw_only=True):
    reason: Literal["max_output_tokens", "content_filter", "awaiting_person"]
    """The last one is not OpenAI's: the run ended where a person's word is needed to go on."""


class ConversationRef(msgspec.Struct, frozen=True, kw_only=True):
    id: str


class TextConfig(msgspec.Struct, frozen=True, kw_only=True):
    format: TextFormat = TextFormat(type="text")


class ResponseEcho(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What of the request its response says again. It is on record with the run."""

    store: bool = True
    background: bool = False
    metadata: dict[str, str] = {}
    previous_response_id: str | None = None
    conversation: ConversationRef | None = None
    text: TextConfig = TextConfig()
    truncation: Literal["auto", "disabled"] = "disabled"
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None

    @classmethod
    def of(cls, run: RunSoFar) -> "ResponseEcho":
        return msgspec.convert(run.created.origin.echo if run.created.origin else {}, cls)


class ResponseObject(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `model` is the agent's name; what its tools did stays with the run."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Status
    completed_at: int | None
    error: ResponseFailure | None
    incomplete_details: IncompleteDetails | None
    model: str
    output: tuple[OutputMessage, ...]
    usage: ResponseUsage | None
    instructions: str | None
    max_output_tokens: int | None
    temperature: float
    top_p: float
    previous_response_id: str | None
    conversation: ConversationRef | None
    store: bool
    background: bool
    metadata: dict[str, str]
    text: TextConfig
    truncation: str
    user: str | None
    safety_identifier: str | None
    prompt_cache_key: str | None
    service_tier: str = "default"
    reasoning: Any = None
    tools: tuple[()] = ()
    tool_choice: str = "auto"
    parallel_tool_calls: bool = True
    max_tool_calls: None = None
    top_logprobs: int = 0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


def response_of(run: RunSoFar, output: tuple[OutputMessage, ...]) -> ResponseObject:
    """The response as it is now."""
    status, overrides = status_of(run), run.created.overrides
    ended_at = run.ended_at if status == "completed" else None
    options = run.definition.options if run.definition else None
    return ResponseObject(
        id=response_id(run.id),
        created_at=int(run.created_at.timestamp()),
        status=status,
        completed_at=int(ended_at.timestamp()) if ended_at else None,
        error=_error(run) if status in ("failed", "cancelled") else None,
        incomplete_details=_incomplete(run) if status == "incomplete" else None,
        model=run.created.agent,
        output=output,
        usage=ResponseUsage.of(run.usage) if run.ending else None,
        instructions=(overrides and overrides.instructions) or None,
        max_output_tokens=overrides.options.max_output_tokens if overrides else None,
        temperature=1.0 if options is None or options.temperature is None else options.temperature,
        top_p=1.0 if options is None or options.top_p is None else options.top_p,
        **msgspec.structs.asdict(ResponseEcho.of(run)),
    )


def status_of(run: RunSoFar) -> Status:
    match run.ending:
        case None:
            waits = run.created.queue is not None and not run.started
            return "queued" if waits else "in_progress"
        case RunCancelled():
            return "cancelled"
        case RunFailed(error_class=class_):
            return "incomplete" if class_ is ErrorClass.CONTENT_FILTERED else "failed"
        case ending if isinstance(ending, RunWaits):
            return "incomplete"
        case _:
            return "incomplete" if run.finish is FinishReason.LENGTH else "completed"


def _error(run: RunSoFar) -> ResponseFailure:
    if isinstance(run.ending, RunFailed):
        code = _CODE_OF_CLASS.get(run.ending.error_class, "server_error")
        return ResponseFailure(code=code, message=run.ending.error)
    return ResponseFailure(code="server_error", message="The response was cancelled.")


def _incomplete(run: RunSoFar) -> IncompleteDetails:
    if isinstance(run.ending, RunWaits):
        return IncompleteDetails(reason="awaiting_person")
    cut = run.finish is FinishReason.LENGTH
    return IncompleteDetails(reason="max_output_tokens" if cut else "content_filter")
