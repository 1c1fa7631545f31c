"""What is recorded of tool calls: a beginning, and one outcome."""

from domain.command import Command
from domain.events import ToolEffect, ToolFailure
from domain.ledger import RecordedResult


class InvokeTool(Command, frozen=True, kw_only=True):
    call_id: str
    effect: ToolEffect
    call_key: str
    safe_to_repeat: bool = False


class RecordToolOutput(Command, frozen=True, kw_only=True):
    call_id: str
    output: str
    duration_ms: int = 0
    truncated: bool = False


class RecordToolFailure(Command, frozen=True, kw_only=True):
    call_id: str
    failure: ToolFailure
    output: str
    duration_ms: int = 0


class AnswerToolCall(Command, frozen=True, kw_only=True):
    """Answer a call from the ledger instead of invoking it."""

    call_id: str
    result: RecordedResult


class RecordUnknownOutcome(Command, frozen=True, kw_only=True):
    call_id: str
    reason: str
