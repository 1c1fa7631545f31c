"""A run's tool calls: what was asked, what came of it, and what nobody knows."""

from enum import StrEnum

from domain.event import Event
from domain.ids import RunId


class ToolEffect(StrEnum):
    """What a tool does to the world. `destructive` and `external` are not repeated without proof (CONT-3)."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    EXTERNAL = "external"


class ToolFailure(StrEnum):
    """Why a call has a failure for a result."""

    RAISED = "raised"
    TIMED_OUT = "timed_out"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    CANCELLED = "cancelled"
    NOT_RUN = "not_run"
    """The run is a replay: it begins no bodies, and there was no recorded result to give."""
    DENIED = "denied"
    """A person did not approve of the call, or none could be asked; so it did not start (TOOL-2)."""
    REFUSED = "refused"
    """A limit of the tree of runs is reached, so the call did not start."""
    AGENT_FAILED = "agent_failed"
    """The agent that was called ended without an answer."""


class ToolInvoking(Event, frozen=True, kw_only=True, tag="tool.invoking.v1"):
    """Committed before the tool's body starts (EVENT-2). `call_key` is its idempotency key outside."""

    call_id: str
    tool: str
    arguments: str
    effect: ToolEffect
    call_key: str
    safe_to_repeat: bool = False


class ToolReturned(Event, frozen=True, kw_only=True, tag="tool.returned.v1"):
    """The body ended well. `output` is what the model reads; `truncated`: the output limit cut it."""

    call_id: str
    tool: str
    output: str
    duration_ms: int = 0
    truncated: bool = False


class ToolFailed(Event, frozen=True, kw_only=True, tag="tool.failed.v1"):
    """The call has a failure for a result. `output` is the sentence that the model reads."""

    call_id: str
    tool: str
    failure: ToolFailure
    output: str
    duration_ms: int = 0


class ToolAnswered(Event, frozen=True, kw_only=True, tag="tool.answered.v1"):
    """The call got the recorded result of an equal one: its body did not run again (CHAIN-6)."""

    call_id: str
    tool: str
    arguments: str
    output: str
    failed: bool = False
    recorded_run_id: RunId
    recorded_call_id: str


class ToolOutcomeUnknown(Event, frozen=True, kw_only=True, tag="tool.outcome-unknown.v1"):
    """The body was left behind still running: it may or may not have had its effect (CANCEL-3)."""

    call_id: str
    tool: str
    reason: str


class ToolResolved(Event, frozen=True, kw_only=True, tag="tool.resolved.v1"):
    """Somebody found out what came of a call that its run had left uncertain. It follows the run's end."""

    call_id: str
    tool: str
    output: str
    failed: bool = False
