"""What may be asked of a run. Commands bring everything a decision needs; `decide` looks nothing up."""

from decimal import Decimal
from typing import Any

from domain.agent import AgentDefinition, Link
from domain.command import Command as Command
from domain.events import ContinuationBlock, FinishReason, RunKind, ToolEffect, ToolFailure
from domain.failure import CallFailure, FailureClass, RunError
from domain.ids import RunId
from domain.ledger import RecordedResult
from domain.messages import AssistantMessage, Message, Usage
from domain.queueing import QueueSpec
from domain.replay import Replay
from domain.side_commands import SideCommand as SideCommand
from domain.submission import Origin, Overrides
from domain.waiting import AwaitedCall, CallDecision, InputRequest, WaitOver
from domain.workflow_commands import AnswerRequest as AnswerRequest
from domain.workflow_commands import WorkflowCommand as WorkflowCommand


class CreateRun(Command, frozen=True, kw_only=True):
    tenant: str
    kind: RunKind = RunKind.AGENT
    agent: str
    input: tuple[Message, ...]
    parameters: dict[str, Any] = {}
    session_id: str | None = None
    root_run_id: RunId | None = None
    parent_run_id: RunId | None = None
    depth: int = 0
    continued_from_run_id: RunId | None = None
    streaming: bool = False
    overrides: Overrides | None = None
    origin: Origin | None = None
    queue: QueueSpec | None = None
    chain_root_run_id: RunId | None = None
    replay: Replay | None = None
    decisions: dict[str, CallDecision] = {}


class StartRun(Command, frozen=True, kw_only=True):
    host: str
    definition: AgentDefinition | None = None
    """None for a workflow's run."""
    session_version: int = 0


class BeginModelCall(Command, frozen=True, kw_only=True):
    step: int
    provider: str
    model: str


class RecordQueueing(Command, frozen=True, kw_only=True):
    """The call in flight has waited long for its place."""

    step: int


class RecordText(Command, frozen=True, kw_only=True):
    step: int
    text: str


class RecordReply(Command, frozen=True, kw_only=True):
    step: int
    message: AssistantMessage
    finish: FinishReason
    usage: Usage = Usage()
    cost: Decimal | None = None
    currency: str = "USD"
    cached: bool = False


class RecordModelFailure(Command, frozen=True, kw_only=True):
    step: int
    failure_class: FailureClass
    failure: CallFailure
    text: str = ""


class RetryModelCall(Command, frozen=True, kw_only=True):
    """Call the link that has just failed once more, after the wait."""

    wait_ms: int


class SkipLink(Command, frozen=True, kw_only=True):
    link: Link
    reason: str


class UseFallback(Command, frozen=True, kw_only=True):
    """Leave the link that failed, or those that were skipped, for this one."""

    fallback: Link
    reason: str
    restarted: bool = False


class ExhaustChain(Command, frozen=True, kw_only=True):
    """No link is left. The run is to end with this error."""

    error: RunError


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


class NoteChild(Command, frozen=True, kw_only=True):
    """A run below this one is opened in the same append."""

    run_id: RunId
    agent: str
    cause: str


class ReportUsage(Command, frozen=True, kw_only=True):
    """A tool or a node has spent something beyond tokens. An amount of None is unknown, not zero."""

    cause: str
    kind: str
    amount: Decimal | None = None
    currency: str | None = None
    counted: bool = False


class Nudge(Command, frozen=True, kw_only=True):
    """Tell the model what its turn still lacks."""

    missing: str
    message: str


class AwaitApproval(Command, frozen=True, kw_only=True):
    """End the run until somebody has said whether these of its open calls may be made."""

    calls: tuple[AwaitedCall, ...]


class AwaitInput(Command, frozen=True, kw_only=True):
    """End the run until somebody has answered."""

    requests: tuple[InputRequest, ...]


class RequestCancel(Command, frozen=True, kw_only=True):
    reason: str = ""


class CompleteRun(Command, frozen=True, kw_only=True):
    """End the turn with the last reply as its answer."""


class FailRun(Command, frozen=True, kw_only=True):
    error: RunError


class CancelRun(Command, frozen=True, kw_only=True):
    """End the run on request. `descendants`: how many runs below it were ended first (CANCEL-3)."""

    reason: str = ""
    descendants: int = 0


class CloseAbandoned(Command, frozen=True, kw_only=True):
    """End a run that nothing works on any more: as cancelled if that was asked for, else as failed.

    `asked`: the reason of a cancel that was accepted and that its owner did not live to record.
    """

    error: RunError
    asked: str | None = None


class CancelQueuedRun(Command, frozen=True, kw_only=True):
    """End a run that no worker has begun. Refused once one has: then its owner has to be asked."""

    reason: str = ""


class ExhaustAttempts(Command, frozen=True, kw_only=True):
    """Give the run's job up: its last worker is gone, and it may have no other."""

    attempts: int


class ResolveTool(Command, frozen=True, kw_only=True):
    """Say what became of a call whose outcome its ended run left unknown."""

    call_id: str
    output: str
    failed: bool = False


class NoteContinued(Command, frozen=True, kw_only=True):
    """Have a run that was interrupted, or waits, name the run that goes on from it (CONT-5)."""

    by: RunId


class NoteBlocked(Command, frozen=True, kw_only=True):
    """Have an interrupted run say why it is not continued, and what can be done."""

    cause: ContinuationBlock
    reason: str
    remedy: str


class NoteWaitEnded(Command, frozen=True, kw_only=True):
    """Have a run that waits say that nobody will answer it any more."""

    cause: WaitOver
    reason: str = ""


AfterwardsCommand = ResolveTool | NoteContinued | NoteBlocked | NoteWaitEnded | AnswerRequest
"""What may be asked of a run that has ended, and of no other."""

RunCommand = (
    SideCommand
    | CreateRun
    | StartRun
    | BeginModelCall
    | RecordQueueing
    | RecordText
    | RecordReply
    | RecordModelFailure
    | RetryModelCall
    | SkipLink
    | UseFallback
    | ExhaustChain
    | InvokeTool
    | RecordToolOutput
    | RecordToolFailure
    | AnswerToolCall
    | RecordUnknownOutcome
    | NoteChild
    | ReportUsage
    | Nudge
    | AwaitApproval
    | AwaitInput
    | RequestCancel
    | CompleteRun
    | FailRun
    | CancelRun
    | CloseAbandoned
    | CancelQueuedRun
    | ExhaustAttempts
    | ResolveTool
    | NoteContinued
    | NoteBlocked
    | NoteWaitEnded
    | AnswerRequest
    | WorkflowCommand
)
