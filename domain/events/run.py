"""The life of a run, from its submission to its end and what is learnt after that."""

from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from domain.agent import AgentDefinition, Link
from domain.event import Event
from domain.events.model import FinishReason
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.messages import Message
from domain.queueing import QueueSpec
from domain.replay import Replay
from domain.submission import Origin, Overrides
from domain.waiting import CallDecision


class RunKind(StrEnum):
    AGENT = "agent"
    WORKFLOW = "workflow"


class ContinuationBlock(StrEnum):
    """Why an interrupted run is not continued (CONT-3, CONT-4)."""

    WORKFLOW_RUN = "workflow_run"
    CHILD_RUN = "child_run"
    NO_SESSION = "no_session"
    WAS_ENDING = "was_ending"
    INPUT_NOT_RECORDED = "input_not_recorded"
    PARAMETERS_NOT_RECORDED = "parameters_not_recorded"
    ATTEMPTS_USED_UP = "attempts_used_up"
    OUTCOME_UNKNOWN = "outcome_unknown"
    """Only this one can be lifted: by saying what became of the call (`ToolResolved`)."""
    AGENT_UNAVAILABLE = "agent_unavailable"


class RunCreated(Event, frozen=True, kw_only=True, tag="run.created.v1"):
    """A submission was accepted. This is all that a continuation or a replay needs to start again."""

    tenant: str
    kind: RunKind
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
    """How it waits for a worker; None: the host that accepted it began it at once."""
    chain_root_run_id: RunId | None = None
    """The first of the runs that continue one another; None: this one is. Call keys are made from it."""
    replay: Replay | None = None
    decisions: dict[str, CallDecision] = {}
    """Its input ends in a reply whose calls have no result yet; this is what somebody said of those that had
    to be approved (TOOL-2)."""


class RunStarted(Event, frozen=True, kw_only=True, tag="run.started.v1"):
    """A host took the run. The definition is the one in force now; later edits of the agent do not touch it.

    A workflow's run has none: `WorkflowOpened` says what it is of. `session_version` is how much of the
    session's stream the run has read as its history (0: none).
    """

    host: str
    definition: AgentDefinition | None = None
    session_version: int = 0


class ChildRunStarted(Event, frozen=True, kw_only=True, tag="child-run.started.v1"):
    """A run below this one was opened and begun, in the same append. This one waits for what it comes to.

    `cause`: the tool call that asked for it, or the node. The result of that says what the child came to.
    """

    run_id: RunId
    agent: str
    cause: str


class UsageReported(Event, frozen=True, kw_only=True, tag="usage.reported.v1"):
    """A tool, or a node, said what it has just spent beyond tokens. `cause`: the call, or the node's name.

    `counted`: the amount is known and in the currency that prices are set in, so budgets know of it.
    """

    cause: str
    kind: str
    amount: Decimal | None = None
    currency: str | None = None
    counted: bool = False


class TurnNudged(Event, frozen=True, kw_only=True, tag="turn.nudged.v1"):
    """The turn had ended without its deliverable, so the model is told what is missing (CHAIN-9)."""

    missing: str
    message: str


class RunCancelRequested(Event, frozen=True, kw_only=True, tag="run.cancel-requested.v1"):
    """Somebody asked; the run ends when its work has stopped."""

    reason: str = ""


class RunContinuationBlocked(Event, frozen=True, kw_only=True, tag="run.continuation-blocked.v1"):
    """The run was interrupted and will not be continued as things are. It follows the run's end (CONT-3)."""

    cause: ContinuationBlock
    reason: str
    remedy: str


class RunContinued(Event, frozen=True, kw_only=True, tag="run.continued.v1"):
    """Another run goes on from this one, which was interrupted or waits. It follows its end (CONT-5)."""

    by: RunId


class RunCompleted(Event, frozen=True, kw_only=True, tag="run.completed.v1"):
    """The turn has its answer. `fallbacks_taken`: the links that failed or were skipped on the way to it."""

    answer: str
    finish: FinishReason = FinishReason.STOP
    fallbacks_taken: tuple[Link, ...] = ()


class RunFailed(Event, frozen=True, kw_only=True, tag="run.failed.v1"):
    """The run ended without an answer. The first cause is what is told.

    `refunded`: no link of the chain could serve it, so an application should not charge for it (CHAIN-10).
    `retry_after_s`: when a provider, or its circuit, may serve again (BREAK-2); None where nobody knows.
    """

    error: str
    error_type: str
    error_class: ErrorClass
    fallbacks_taken: tuple[Link, ...] = ()
    refunded: bool = False
    retry_after_s: float | None = None


class StoppedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a cancel came upon."""

    call_id: str
    tool: str


class RunCancelled(Event, frozen=True, kw_only=True, tag="run.cancelled.v1"):
    """The run was stopped on request. What had finished stays recorded; the rest is the receipt (CANCEL-3).

    `model_call`: the call that was given up, its connection closed. `interrupted` tool calls were stopped,
    `unknown` ones were not and may have had their effect. `descendants`: runs below that ended with it.
    """

    reason: str = ""
    model_call: Link | None = None
    interrupted: tuple[StoppedCall, ...] = ()
    unknown: tuple[StoppedCall, ...] = ()
    descendants: int = 0


class JobAttemptsExhausted(Event, frozen=True, kw_only=True, tag="job.attempts-exhausted.v1"):
    """The queue gave the run's job up: so many workers had it, and none brought it to an end (JOB-1).

    A run that had begun stays open: closing it is for reconciliation.
    """

    attempts: int
