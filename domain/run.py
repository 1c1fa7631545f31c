"""The run aggregate's state: `evolve` folds facts in and never refuses. `decide` says what may follow."""

from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum
from typing import Any, assert_never

import msgspec

from domain import events as e
from domain.agent import AgentDefinition
from domain.beside import Beside
from domain.beside import evolve as evolve_beside
from domain.failure import FailureClass, RunError
from domain.ids import RunId, Version
from domain.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    unanswered,
    with_result,
)
from domain.side_events import AnswerSentBack, SideCallReplied
from domain.standing import ChainStanding
from domain.standing import evolve as evolve_standing
from domain.workflow import WorkflowRun, opened
from domain.workflow import evolve as evolve_workflow
from domain.workflow_events import WorkflowOpened


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


def evolve(run: Run, event: e.RunEvent) -> Run:  # noqa: C901 - one flat dispatch
    """Fold one fact in. Never raises: history is not up for debate."""
    version = Version(run.version + 1)
    if isinstance(event, e.SideEvent):
        return _beside(run, event, version)
    if isinstance(event, e.WorkflowEvent):
        return _with(run, version=version, workflow=_in_workflow(run, event, version))
    match event:
        case e.RunCreated():
            left_open = _left_open(event)
            return _with(run, version=version, created=event, transcript=event.input, open_calls=left_open)
        case e.RunStarted():
            return _with(
                run,
                version=version,
                status=RunStatus.RUNNING,
                definition=event.definition,
                session_version=event.session_version,
            )
        case e.ModelCallStarted():
            call = ModelCall(
                step=event.step, attempt=event.attempt, provider=event.provider, model=event.model
            )
            return _with(run, version=version, step=event.step, calling=call)
        case e.ModelCallQueued():
            return _with(run, version=version, calling=_marked_call(run, queued=True))
        case e.TextDelta():
            return _with(run, version=version, calling=_marked_call(run, delivered=True))
        case e.ModelReplied():
            return _replied(run, event, version)
        case e.ModelCallFailed():
            failed = (*run.failed, event.failure_class)
            standing = evolve_standing(run.standing, event)
            return _with(run, version=version, calling=None, failed=failed, standing=standing)
        case e.ModelCallRetried() | e.ChainLinkSkipped() | e.ChainExhausted():
            return _with(run, version=version, standing=evolve_standing(run.standing, event))
        case e.ModelFallbackUsed():
            return _switched(run, event, version)
        case e.ToolInvoking():
            return _with(run, version=version, open_calls=_invoked(run, event))
        case e.ToolReturned():
            return _settled(run, version, ToolMessage(tool_call_id=event.call_id, content=event.output))
        case e.ToolFailed():
            if event.failure is e.ToolFailure.CANCELLED:
                stopped = e.StoppedCall(call_id=event.call_id, tool=event.tool)
                run = _with(run, stopping=True, interrupted=(*run.interrupted, stopped))
            return _settled(
                run, version, ToolMessage(tool_call_id=event.call_id, content=event.output, failed=True)
            )
        case e.ToolAnswered():
            return _settled(
                run,
                version,
                ToolMessage(tool_call_id=event.call_id, content=event.output, failed=event.failed),
            )
        case e.ToolOutcomeUnknown():
            return _with(run, version=version, open_calls=_marked(run, event.call_id, left_behind=True))
        case e.ChildRunStarted() | e.UsageReported():
            return _with(run, version=version)
        case e.TurnNudged():
            transcript = (*run.transcript, UserMessage(content=event.message))
            return _with(run, version=version, transcript=transcript, finish=None, nudges=run.nudges + 1)
        case e.RunCancelRequested():
            return _with(run, version=version, cancel_requested=True, cancel_reason=event.reason)
        case e.JobAttemptsExhausted():
            return _with(run, version=version, attempts_exhausted=True)
        case e.RunCompleted():
            return _with(run, version=version, status=RunStatus.COMPLETED)
        case e.RunFailed():
            return _with(run, version=version, status=RunStatus.FAILED, calling=None, error=_error_of(event))
        case e.RunCancelled():
            return _with(run, version=version, status=RunStatus.CANCELLED, calling=None)
        case e.RunAwaitingApproval():
            return _with(run, version=version, status=RunStatus.AWAITING_APPROVAL)
        case e.RunAwaitingInput():
            return _with(run, version=version, status=RunStatus.AWAITING_INPUT)
        case e.RunWaitEnded():
            return _with(run, version=version, wait_over=event.cause)
        case e.RunContinued():
            return _with(run, version=version, continued_by=event.by)
        case e.InputAnswered():
            return _with(run, version=version)
        case e.RunContinuationBlocked():
            return _with(run, version=version, blocked=event)
        case e.ToolResolved():
            return _with(run, version=version, open_calls=_marked(run, event.call_id, resolved=event))
        case _:
            assert_never(event)


def fold(run_id: RunId, events: Iterable[e.RunEvent]) -> Run:
    """The state after these events, from nothing."""
    run = Run(id=run_id)
    for event in events:
        run = evolve(run, event)
    return run


_with = msgspec.structs.replace


def _in_workflow(run: Run, event: e.WorkflowEvent, version: Version) -> WorkflowRun | None:
    if isinstance(event, WorkflowOpened):
        return opened(event)
    return run.workflow and evolve_workflow(run.workflow, event, version)


def _beside(run: Run, event: e.SideEvent, version: Version) -> Run:
    run = _with(run, version=version, beside=evolve_beside(run.beside, event, run.step))
    match event:
        case SideCallReplied():
            return _charged(run, event.usage, event.cost)
        case AnswerSentBack():
            return _with(run, transcript=(*run.transcript, UserMessage(content=event.message)), finish=None)
        case _:
            return run


def _charged(run: Run, usage: Usage, cost: Decimal | None) -> Run:
    known = None if run.cost is None or cost is None else run.cost + cost
    return _with(run, usage=run.usage + usage, cost=known)


def _error_of(event: e.RunFailed) -> RunError:
    return RunError(
        message=event.error,
        type=event.error_type,
        error_class=event.error_class,
        retry_after_s=event.retry_after_s,
    )


def _replied(run: Run, event: e.ModelReplied, version: Version) -> Run:
    transcript = _with_reply(run, event.message)
    replied = _with(
        run,
        version=version,
        calling=None,
        failed=(),
        standing=evolve_standing(run.standing, event),
        beside=run.beside.after_reply(event.usage, len(transcript)),
        transcript=transcript,
        continuations=run.continuations + 1 if run.unfinished_text else 0,
        open_calls=tuple(OpenCall(call=call) for call in event.message.tool_calls),
        finish=event.finish,
    )
    return _charged(replied, event.usage, event.cost)


def _with_reply(run: Run, reply: AssistantMessage) -> tuple[Message, ...]:
    """A reply that carries on the last one's text becomes one message with it."""
    if not run.unfinished_text:
        return (*run.transcript, reply)
    # What its provider keeps of the reply has the last part of the text only.
    whole = _with(reply, content=run.unfinished_text + reply.content, provider_blocks=None)
    return (*run.transcript[:-1], whole)


def _switched(run: Run, event: e.ModelFallbackUsed, version: Version) -> Run:
    run = _with(run, version=version, standing=evolve_standing(run.standing, event))
    if not event.restarted:
        return run
    opening = run.created.input if run.created else ()
    left_open = _left_open(run.created) if run.created else ()
    beside = run.beside.for_next_link()
    return _with(run, transcript=opening, open_calls=left_open, finish=None, beside=beside)


def _left_open(created: e.RunCreated) -> tuple[OpenCall, ...]:
    """The calls that a run goes on with after they were decided of. Any other begins without some."""
    if not created.decisions:
        return ()
    return tuple(
        OpenCall(call=call, decision=created.decisions.get(call.id)) for call in unanswered(created.input)
    )


def _marked_call(run: Run, **marks: bool) -> ModelCall | None:
    return _with(run.calling, **marks) if run.calling else None


def _invoked(run: Run, event: e.ToolInvoking) -> tuple[OpenCall, ...]:
    return _marked(
        run, event.call_id, invoking=True, effect=event.effect, safe_to_repeat=event.safe_to_repeat
    )


def _marked(run: Run, call_id: str, **marks: Any) -> tuple[OpenCall, ...]:
    return tuple(
        _with(open_call, **marks) if open_call.call.id == call_id else open_call
        for open_call in run.open_calls
    )


def _settled(run: Run, version: Version, result: ToolMessage) -> Run:
    return _with(
        run,
        version=version,
        transcript=with_result(run.transcript, result),
        open_calls=tuple(c for c in run.open_calls if c.call.id != result.tool_call_id),
    )
