"""The state of the run aggregate: what `evolve` folds facts into, and `decide` reads."""

from decimal import Decimal
from enum import StrEnum

import msgspec

from domain import events as e
from domain.agent import AgentDefinition
from domain.beside import Beside
from domain.chain.standing import ChainStanding
from domain.failure import FailureClass, RunError
from domain.ids import RunId, Version
from domain.messages import AssistantMessage, Message, ToolCall, Usage
from domain.workflow.state import WorkflowRun


class RunStatus(StrEnum):
    QUEUED = "Queued"
    RUNNING = "Running"
    AWAITING_APPROVAL = "AwaitingApproval"
    AWAITING_INPUT = "AwaitingInput"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def ended(self) -> bool:
        """Final for this run: an answer or a decision opens a new one."""
        return self not in (RunStatus.QUEUED, RunStatus.RUNNING)

    @property
    def awaits(self) -> bool:
        """Ended where a person's word is needed, which opens a new run."""
        return self in (RunStatus.AWAITING_APPROVAL, RunStatus.AWAITING_INPUT)


_STATUS_AFTER: dict[type[e.Event], RunStatus] = {
    e.RunCompleted: RunStatus.COMPLETED,
    e.RunFailed: RunStatus.FAILED,
    e.RunCancelled: RunStatus.CANCELLED,
    e.RunAwaitingApproval: RunStatus.AWAITING_APPROVAL,
    e.RunAwaitingInput: RunStatus.AWAITING_INPUT,
}


def status_after(end: e.RunEnd) -> RunStatus:
    """What a run is that ended like this."""
    return _STATUS_AFTER[type(end)]


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of the last reply that has no result yet."""

    call: ToolCall
    invoking: bool = False
    effect: e.ToolEffect | None = None
    """The tool's effect, since the call is being invoked."""
    safe_to_repeat: bool = False
    left_behind: bool = False
    """Its body did not stop when told to; whether it had its effect is unknown."""
    decision: e.CallDecision | None = None
    """What somebody said of it, where it had to be approved."""
    resolved: e.ToolResolved | None = None
    """What somebody found out after the run had ended. The run itself never knew."""

    @property
    def outcome_unknown(self) -> bool:
        """Whether its body began and nobody knows what came of it. While the run lives it may be at it."""
        return self.invoking and self.resolved is None


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """The model call in flight."""

    step: int
    attempt: int
    provider: str
    model: str
    delivered: bool = False
    """Whether some of its text was already told to a watcher."""
    queued: bool = False
    """Whether it was told that it waits for a place."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What later decisions read, and no more."""

    id: RunId
    version: Version = Version(0)
    status: RunStatus = RunStatus.QUEUED
    created: e.RunCreated | None = None
    definition: AgentDefinition | None = None
    session_version: int = 0
    step: int = 0
    calling: ModelCall | None = None
    failed: tuple[FailureClass, ...] = ()
    """The classes of this step's failed calls, in order."""
    standing: ChainStanding = ChainStanding()
    transcript: tuple[Message, ...] = ()
    """This turn so far: its input, then replies, each with its tool results in the order of the calls."""
    open_calls: tuple[OpenCall, ...] = ()
    finish: e.FinishReason | None = None
    continuations: int = 0
    """How many calls carried on the last reply's text, which its output limit had ended (CHAIN-8)."""
    nudges: int = 0
    cancel_requested: bool = False
    cancel_reason: str = ""
    interrupted: tuple[e.StoppedCall, ...] = ()
    """Tool calls that a cancel has stopped."""
    attempts_exhausted: bool = False
    """Its job was given up; nothing works on the run any more."""
    stopping: bool = False
    """A call was stopped on purpose, so that the run can end."""
    error: RunError | None = None
    """Why a failed run failed."""
    continued_by: RunId | None = None
    wait_over: e.WaitOver | None = None
    """Why nobody's word will come any more, for a run that waits."""
    blocked: e.RunContinuationBlocked | None = None
    """The last word on why the run is not continued."""
    workflow: WorkflowRun | None = None
    """Where its workflow stands, for a run that is of one."""
    beside: Beside = Beside()
    """The calls that it makes besides its agent's own (CHAIN-13)."""
    usage: Usage = Usage()
    cost: Decimal | None = Decimal(0)

    @property
    def chain_root(self) -> RunId:
        """The first of the runs that continue one another."""
        return (self.created.chain_root_run_id if self.created else None) or self.id

    @property
    def failed_as(self) -> str | None:
        """The error type of a failed run."""
        return self.error.type if self.error else None

    @property
    def session_of_turn(self) -> str | None:
        """The session that its turn is to be part of. Child runs and workflows have none in theirs."""
        created = self.created
        if created is None or created.parent_run_id is not None or created.kind is not e.RunKind.AGENT:
            return None
        return created.session_id

    @property
    def given(self) -> str:
        """The text that its workflow was given."""
        last = self.created.input[-1] if self.created and self.created.input else None
        return last.content if last else ""

    @property
    def answer(self) -> str:
        """The text of the last reply, if nothing follows it. An input that ends in a reply is no answer."""
        if self.finish is None:
            return ""
        last = self.transcript[-1] if self.transcript else None
        return last.content if isinstance(last, AssistantMessage) else ""

    @property
    def unfinished_text(self) -> str:
        """The text that its output limit ended and that the next call carries on."""
        return self.answer if self.finish is e.FinishReason.LENGTH else ""
