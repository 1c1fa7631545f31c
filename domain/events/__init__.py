"""Every fact the log can hold.

A class name is the event's public `type`; its tag is the topic, the name on disk: chosen by hand, versioned,
never reused. A new field gets a default. Any other change is a new topic and an upcaster in `codec`.
"""

from domain.event import Event as Event
from domain.event import Recorded as Recorded
from domain.event import topic_of as topic_of
from domain.events.agent import AgentDefined as AgentDefined
from domain.events.agent import AgentEvent as AgentEvent
from domain.events.agent import AgentRemoved as AgentRemoved
from domain.events.approval import ApprovalDecided as ApprovalDecided
from domain.events.approval import ApprovalEvent as ApprovalEvent
from domain.events.approval import ApprovalExpired as ApprovalExpired
from domain.events.approval import ApprovalRequested as ApprovalRequested
from domain.events.approval import ApprovalWithdrawn as ApprovalWithdrawn
from domain.events.idempotency import IdempotencyKeyCompleted as IdempotencyKeyCompleted
from domain.events.idempotency import IdempotencyKeyReleased as IdempotencyKeyReleased
from domain.events.idempotency import IdempotencyKeyReserved as IdempotencyKeyReserved
from domain.events.model import ChainExhausted as ChainExhausted
from domain.events.model import ChainLinkSkipped as ChainLinkSkipped
from domain.events.model import FinishReason as FinishReason
from domain.events.model import ModelCallFailed as ModelCallFailed
from domain.events.model import ModelCallQueued as ModelCallQueued
from domain.events.model import ModelCallRetried as ModelCallRetried
from domain.events.model import ModelCallStarted as ModelCallStarted
from domain.events.model import ModelFallbackUsed as ModelFallbackUsed
from domain.events.model import ModelReplied as ModelReplied
from domain.events.model import TextDelta as TextDelta
from domain.events.run import ChildRunStarted as ChildRunStarted
from domain.events.run import ContinuationBlock as ContinuationBlock
from domain.events.run import JobAttemptsExhausted as JobAttemptsExhausted
from domain.events.run import RunCancelled as RunCancelled
from domain.events.run import RunCancelRequested as RunCancelRequested
from domain.events.run import RunCompleted as RunCompleted
from domain.events.run import RunContinuationBlocked as RunContinuationBlocked
from domain.events.run import RunContinued as RunContinued
from domain.events.run import RunCreated as RunCreated
from domain.events.run import RunFailed as RunFailed
from domain.events.run import RunKind as RunKind
from domain.events.run import RunStarted as RunStarted
from domain.events.run import StoppedCall as StoppedCall
from domain.events.run import TurnNudged as TurnNudged
from domain.events.run import UsageReported as UsageReported
from domain.events.schedule import BatchCreated as BatchCreated
from domain.events.schedule import ScheduleDefined as ScheduleDefined
from domain.events.schedule import ScheduleFired as ScheduleFired
from domain.events.schedule import SchedulePaused as SchedulePaused
from domain.events.schedule import ScheduleRemoved as ScheduleRemoved
from domain.events.schedule import ScheduleResumed as ScheduleResumed
from domain.events.schedule import ScheduleSkipped as ScheduleSkipped
from domain.events.schedule import ScheduleTriggered as ScheduleTriggered
from domain.events.session import SessionOpened as SessionOpened
from domain.events.session import SessionTurnAdded as SessionTurnAdded
from domain.events.session import SessionTurnBegun as SessionTurnBegun
from domain.events.session import SessionTurnQueued as SessionTurnQueued
from domain.events.side import SessionSummarised as SessionSummarised
from domain.events.side import SideEvent as SideEvent
from domain.events.tool import ToolAnswered as ToolAnswered
from domain.events.tool import ToolEffect as ToolEffect
from domain.events.tool import ToolFailed as ToolFailed
from domain.events.tool import ToolFailure as ToolFailure
from domain.events.tool import ToolInvoking as ToolInvoking
from domain.events.tool import ToolOutcomeUnknown as ToolOutcomeUnknown
from domain.events.tool import ToolResolved as ToolResolved
from domain.events.tool import ToolReturned as ToolReturned
from domain.events.workflow import InputAnswered as InputAnswered
from domain.events.workflow import WorkflowEvent as WorkflowEvent
from domain.events.workflow_definition import WorkflowDefined as WorkflowDefined
from domain.events.workflow_definition import WorkflowDefinitionEvent as WorkflowDefinitionEvent
from domain.events.workflow_definition import WorkflowRemoved as WorkflowRemoved
from domain.waiting import AwaitedCall as AwaitedCall
from domain.waiting import CallDecision as CallDecision
from domain.waiting import InputRequest as InputRequest
from domain.waiting import RunAwaitingApproval as RunAwaitingApproval
from domain.waiting import RunAwaitingInput as RunAwaitingInput
from domain.waiting import RunWaitEnded as RunWaitEnded
from domain.waiting import RunWaits as RunWaits
from domain.waiting import WaitOver as WaitOver

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
