"""Every fact the log can hold.

A class name is the event's public `type`; its tag is the topic, the name on disk: chosen by hand, versioned,
never reused. A new field gets a default. Any other change is a new topic and an upcaster in `codec`.
"""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from domain.agent import AgentDefinition, Link
from domain.agent_events import AgentDefined as AgentDefined
from domain.agent_events import AgentEvent as AgentEvent
from domain.agent_events import AgentRemoved as AgentRemoved
from domain.approval_events import ApprovalDecided as ApprovalDecided
from domain.approval_events import ApprovalEvent as ApprovalEvent
from domain.approval_events import ApprovalExpired as ApprovalExpired
from domain.approval_events import ApprovalRequested as ApprovalRequested
from domain.approval_events import ApprovalWithdrawn as ApprovalWithdrawn
from domain.event import Event as Event
from domain.event import Recorded as Recorded
from domain.event import topic_of as topic_of
from domain.failure import CallFailure, ErrorClass, FailureClass
from domain.ids import RunId
from domain.messages import AssistantMessage, Message, Usage
from domain.queueing import QueueSpec, ScheduleDefinition
from domain.replay import Replay
from domain.side_events import SessionSummarised as SessionSummarised
from domain.side_events import SideEvent as SideEvent
from domain.submission import Origin, Overrides
from domain.waiting import AwaitedCall as AwaitedCall
from domain.waiting import CallDecision as CallDecision
from domain.waiting import InputRequest as InputRequest
from domain.waiting import RunAwaitingApproval as RunAwaitingApproval
from domain.waiting import RunAwaitingInput as RunAwaitingInput
from domain.waiting import RunWaitEnded as RunWaitEnded
from domain.waiting import RunWaits as RunWaits
from domain.waiting import WaitOver as WaitOver
from domain.workflow_events import InputAnswered as InputAnswered
from domain.workflow_events import WorkflowEvent as WorkflowEvent


class RunKind(StrEnum):
    AGENT = "agent"
    WORKFLOW = "workflow"


class FinishReason(StrEnum):
    """Why a model stopped writing, in the field's common terms."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"


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


class ModelCallStarted(Event, frozen=True, kw_only=True, tag="model-call.started.v1"):
    """A call to a link begins. `attempt` counts the calls of this step from 1, over all links."""

    step: int
    attempt: int
    provider: str
    model: str


class ModelCallQueued(Event, frozen=True, kw_only=True, tag="model-call.queued.v1"):
    """The call still waits for a place at its provider. Told once, when that has taken a while (CONC-2)."""

    step: int
    attempt: int
    provider: str
    model: str


class TextDelta(Event, frozen=True, kw_only=True, tag="text.delta.v1"):
    """Some more of the answer's text. `ModelReplied` repeats it whole; nothing but a watcher needs this."""

    step: int
    text: str


class ModelReplied(Event, frozen=True, kw_only=True, tag="model.replied.v1"):
    """One model call came back with content. A `cost` of None means that the price is unknown, not zero.

    `currency` is the one that prices were set in at the time; without a cost it means nothing.
    """

    step: int
    provider: str
    model: str
    message: AssistantMessage
    finish: FinishReason
    usage: Usage = Usage()
    cost: Decimal | None = None
    currency: str = "USD"
    cached: bool = False
    """An earlier reply to the very same request was given again; no call was made."""


class ModelCallFailed(Event, frozen=True, kw_only=True, tag="model-call.failed.v1"):
    """One call to a link failed. What follows from it is an event of its own."""

    step: int
    attempt: int
    provider: str
    model: str
    failure_class: FailureClass
    failure: CallFailure
    text: str = ""
    """What watchers were shown of its answer, where that stands in no TextDelta (CHAIN-7)."""


class ModelCallRetried(Event, frozen=True, kw_only=True, tag="model-call.retried.v1"):
    """The link that failed is called once more in this step, after the wait (CHAIN-2)."""

    step: int
    provider: str
    model: str
    failure_class: FailureClass
    wait_ms: int


class ChainLinkSkipped(Event, frozen=True, kw_only=True, tag="chain-link.skipped.v1"):
    """A link was passed over without a call: its model cannot do what the turn needs (CHAIN-4)."""

    step: int
    provider: str
    model: str
    reason: str


class ModelFallbackUsed(Event, frozen=True, kw_only=True, tag="model-fallback.used.v1"):
    """From here on the turn is on another link (CHAIN-11). `primary` is the agent's own.

    Without a class the switch is due to a skip. `restarted`: the turn begins again from its input (CHAIN-6).
    """

    primary: Link
    fallback: Link
    failure_class: FailureClass | None = None
    reason: str
    step: int
    restarted: bool = False


class ChainExhausted(Event, frozen=True, kw_only=True, tag="chain.exhausted.v1"):
    """No link is left: all of `links` failed or were skipped. The run gets the first's error (CHAIN-10)."""

    step: int
    links: tuple[Link, ...]
    error: str
    error_class: ErrorClass
    retry_after_s: float | None = None


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


class ToolResolved(Event, frozen=True, kw_only=True, tag="tool.resolved.v1"):
    """Somebody found out what came of a call that its run had left uncertain. It follows the run's end."""

    call_id: str
    tool: str
    output: str
    failed: bool = False


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


class SessionOpened(Event, frozen=True, kw_only=True, tag="session.opened.v1"):
    """A conversation was begun before its first turn: by itself, or to go on from the end of a run.

    `messages` are the history that it begins with.
    """

    session_id: str
    metadata: dict[str, str] = {}
    messages: tuple[Message, ...] = ()
    continues_run_id: RunId | None = None


class SessionTurnQueued(Event, frozen=True, kw_only=True, tag="session.turn-queued.v1"):
    """A run waits for the runs of its conversation that were there before it.

    `in_place_of`: it continues that one and has its place. `limit_s` after this was recorded, nothing works
    on the run any more, whatever its own stream says.
    """

    run_id: RunId
    limit_s: float
    in_place_of: RunId | None = None


class SessionTurnBegun(Event, frozen=True, kw_only=True, tag="session.turn-begun.v1"):
    """The conversation is this run's alone until the run has ended, but for no longer than `limit_s`."""

    run_id: RunId
    limit_s: float


class SessionTurnAdded(Event, frozen=True, kw_only=True, tag="session.turn-added.v1"):
    """A run's turn became part of its conversation, in the same append as the run's end."""

    run_id: RunId
    messages: tuple[Message, ...]


class ScheduleDefined(Event, frozen=True, kw_only=True, tag="schedule.defined.v1"):
    """The schedule is this from now on, whatever it was. Without `next_due` it will never fire."""

    definition: ScheduleDefinition
    next_due: datetime | None = None


class SchedulePaused(Event, frozen=True, kw_only=True, tag="schedule.paused.v1"):
    """Due times pass by until it is resumed. They do not count as missed."""


class ScheduleResumed(Event, frozen=True, kw_only=True, tag="schedule.resumed.v1"):
    """It fires again, from `next_due` on."""

    next_due: datetime | None = None


class ScheduleFired(Event, frozen=True, kw_only=True, tag="schedule.fired.v1"):
    """A due time had its run, in the same append. No other host can fire it again: it was this stream's next.

    `missed_since`: the run also stands for the due times from then on that nobody fired.
    """

    due: datetime
    run_id: RunId
    next_due: datetime | None = None
    missed_since: datetime | None = None


class ScheduleSkipped(Event, frozen=True, kw_only=True, tag="schedule.skipped.v1"):
    """Nobody was there to fire these due times, from the first to the last, and they get no run."""

    due: datetime
    until: datetime
    next_due: datetime | None = None


class ScheduleTriggered(Event, frozen=True, kw_only=True, tag="schedule.triggered.v1"):
    """Somebody asked for a run out of turn. Due times do not change by it."""

    run_id: RunId


class ScheduleRemoved(Event, frozen=True, kw_only=True, tag="schedule.removed.v1"):
    """There is no such schedule any more. Its name is free."""


class IdempotencyKeyReserved(Event, frozen=True, kw_only=True, tag="idempotency-key.reserved.v1"):
    """A submission has the key, from the same append on that opened its run (IDEM-4).

    `form` names what its answer looks like, so that any host can make it from the run's events.
    """

    key: str
    method: str
    path: str
    fingerprint: str
    run_id: RunId
    form: str


class IdempotencyKeyCompleted(Event, frozen=True, kw_only=True, tag="idempotency-key.completed.v1"):
    """The submission has its answer, and whoever repeats it gets this one, byte for byte.

    `run_id`: the run that the answer is of; the last one of its chain, where runs were continued (IDEM-5).
    """

    run_id: RunId
    status: int
    content_type: str
    body: str
    headers: dict[str, str] = {}
    by_operator: bool = False


class IdempotencyKeyReleased(Event, frozen=True, kw_only=True, tag="idempotency-key.released.v1"):
    """Nothing came of the submission that could be given again. The key may be used as if it were new."""

    run_id: RunId
    reason: str


class BatchCreated(Event, frozen=True, kw_only=True, tag="batch.created.v1"):
    """Runs that were submitted together, each created in the same append. Item n is `runs[n]`."""

    agent: str
    runs: tuple[RunId, ...]


RunEvent = (
    SideEvent
    | RunCreated
    | RunStarted
    | ModelCallStarted
    | ModelCallQueued
    | TextDelta
    | ModelReplied
    | ModelCallFailed
    | ModelCallRetried
    | ChainLinkSkipped
    | ModelFallbackUsed
    | ChainExhausted
    | ToolInvoking
    | ToolReturned
    | ToolFailed
    | ToolAnswered
    | ToolOutcomeUnknown
    | ChildRunStarted
    | UsageReported
    | TurnNudged
    | RunCancelRequested
    | RunCompleted
    | RunFailed
    | RunCancelled
    | RunAwaitingApproval
    | RunAwaitingInput
    | JobAttemptsExhausted
    | RunContinuationBlocked
    | RunContinued
    | RunWaitEnded
    | ToolResolved
    | InputAnswered
    | WorkflowEvent
)
RunEnd = RunCompleted | RunFailed | RunCancelled | RunAwaitingApproval | RunAwaitingInput
AfterEnd = RunContinuationBlocked | RunContinued | RunWaitEnded | ToolResolved | InputAnswered
"""All that may follow a run's end. None of it changes what the run came to."""
SessionEvent = SessionOpened | SessionTurnQueued | SessionTurnBegun | SessionTurnAdded | SessionSummarised
ScheduleEvent = (
    ScheduleDefined
    | SchedulePaused
    | ScheduleResumed
    | ScheduleFired
    | ScheduleSkipped
    | ScheduleTriggered
    | ScheduleRemoved
)
BatchEvent = BatchCreated
IdempotencyEvent = IdempotencyKeyReserved | IdempotencyKeyCompleted | IdempotencyKeyReleased
AnyEvent = AgentEvent | ApprovalEvent | RunEvent | SessionEvent | ScheduleEvent | BatchEvent | IdempotencyEvent
