"""Every fact the log can hold.

A class name is the event's public `type`; its tag is the topic, the name on disk: chosen by hand, versioned,
never reused. A new field gets a default. Any other change is a new topic and an upcaster in `codec`.
"""

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
from domain.idempotency_events import IdempotencyKeyCompleted as IdempotencyKeyCompleted
from domain.idempotency_events import IdempotencyKeyReleased as IdempotencyKeyReleased
from domain.idempotency_events import IdempotencyKeyReserved as IdempotencyKeyReserved
from domain.model_events import ChainExhausted as ChainExhausted
from domain.model_events import ChainLinkSkipped as ChainLinkSkipped
from domain.model_events import FinishReason as FinishReason
from domain.model_events import ModelCallFailed as ModelCallFailed
from domain.model_events import ModelCallQueued as ModelCallQueued
from domain.model_events import ModelCallRetried as ModelCallRetried
from domain.model_events import ModelCallStarted as ModelCallStarted
from domain.model_events import ModelFallbackUsed as ModelFallbackUsed
from domain.model_events import ModelReplied as ModelReplied
from domain.model_events import TextDelta as TextDelta
from domain.run_events import ChildRunStarted as ChildRunStarted
from domain.run_events import ContinuationBlock as ContinuationBlock
from domain.run_events import JobAttemptsExhausted as JobAttemptsExhausted
from domain.run_events import RunCancelled as RunCancelled
from domain.run_events import RunCancelRequested as RunCancelRequested
from domain.run_events import RunCompleted as RunCompleted
from domain.run_events import RunContinuationBlocked as RunContinuationBlocked
from domain.run_events import RunContinued as RunContinued
from domain.run_events import RunCreated as RunCreated
from domain.run_events import RunFailed as RunFailed
from domain.run_events import RunKind as RunKind
from domain.run_events import RunStarted as RunStarted
from domain.run_events import StoppedCall as StoppedCall
from domain.run_events import TurnNudged as TurnNudged
from domain.run_events import UsageReported as UsageReported
from domain.schedule_events import BatchCreated as BatchCreated
from domain.schedule_events import ScheduleDefined as ScheduleDefined
from domain.schedule_events import ScheduleFired as ScheduleFired
from domain.schedule_events import SchedulePaused as SchedulePaused
from domain.schedule_events import ScheduleRemoved as ScheduleRemoved
from domain.schedule_events import ScheduleResumed as ScheduleResumed
from domain.schedule_events import ScheduleSkipped as ScheduleSkipped
from domain.schedule_events import ScheduleTriggered as ScheduleTriggered
from domain.session_events import SessionOpened as SessionOpened
from domain.session_events import SessionTurnAdded as SessionTurnAdded
from domain.session_events import SessionTurnBegun as SessionTurnBegun
from domain.session_events import SessionTurnQueued as SessionTurnQueued
from domain.side_events import SessionSummarised as SessionSummarised
from domain.side_events import SideEvent as SideEvent
from domain.tool_events import ToolAnswered as ToolAnswered
from domain.tool_events import ToolEffect as ToolEffect
from domain.tool_events import ToolFailed as ToolFailed
from domain.tool_events import ToolFailure as ToolFailure
from domain.tool_events import ToolInvoking as ToolInvoking
from domain.tool_events import ToolOutcomeUnknown as ToolOutcomeUnknown
from domain.tool_events import ToolResolved as ToolResolved
from domain.tool_events import ToolReturned as ToolReturned
from domain.waiting import AwaitedCall as AwaitedCall
from domain.waiting import CallDecision as CallDecision
from domain.waiting import InputRequest as InputRequest
from domain.waiting import RunAwaitingApproval as RunAwaitingApproval
from domain.waiting import RunAwaitingInput as RunAwaitingInput
from domain.waiting import RunWaitEnded as RunWaitEnded
from domain.waiting import RunWaits as RunWaits
from domain.waiting import WaitOver as WaitOver
from domain.workflow_definition_events import WorkflowDefined as WorkflowDefined
from domain.workflow_definition_events import WorkflowDefinitionEvent as WorkflowDefinitionEvent
from domain.workflow_definition_events import WorkflowRemoved as WorkflowRemoved
from domain.workflow_events import InputAnswered as InputAnswered
from domain.workflow_events import WorkflowEvent as WorkflowEvent

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
AnyEvent = (
    AgentEvent
    | WorkflowDefinitionEvent
    | ApprovalEvent
    | RunEvent
    | SessionEvent
    | ScheduleEvent
    | BatchEvent
    | IdempotencyEvent
)
