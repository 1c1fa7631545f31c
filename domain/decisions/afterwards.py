"""What may follow a run's end: a word on its continuation, the truth about a call that it left uncertain."""

from typing import assert_never

from domain import events as e
from domain.commands import (
    AfterwardsCommand,
    AnswerRequest,
    NoteBlocked,
    NoteContinued,
    NoteWaitEnded,
    ResolveTool,
)
from domain.decisions import waiting
from domain.messages import AssistantMessage
from domain.refusals import (
    AlreadyContinued,
    OutcomeKnown,
    ResolvedOtherwise,
    RunNotEnded,
    ToolCallNotFound,
    WaitIsOver,
    require,
)
from domain.run import OpenCall, Run, RunStatus
from domain.workflow import decide as workflow


def decide(run: Run, command: AfterwardsCommand) -> list[e.RunEvent]:
    if not run.status.ended:
        raise RunNotEnded(run.id)
    match command:
        case ResolveTool():
            return _resolve(run, command)
        case NoteContinued():
            return _note_continued(run, command)
        case NoteBlocked():
            return _note_blocked(run, command)
        case NoteWaitEnded():
            return waiting.note_wait_ended(run, command)
        case AnswerRequest():
            return [_answer(run, command)]
        case _:
            assert_never(command)


def _note_continued(run: Run, command: NoteContinued) -> list[e.RunEvent]:
    resumable = run.workflow is not None and run.status is RunStatus.CANCELLED
    may_be = run.status is RunStatus.FAILED or run.status.awaits or resumable
    require(may_be, run, "only a run that failed or waits is gone on from")
    if run.continued_by == command.by:
        return []
    _require_not_continued(run)
    if run.wait_over is not None:
        raise WaitIsOver(run.id)
    return [e.RunContinued(by=command.by)]


def _answer(run: Run, command: AnswerRequest) -> e.InputAnswered:
    require(run.status is RunStatus.AWAITING_INPUT, run, "it asks nobody anything")
    _require_not_continued(run)
    if run.wait_over is not None:
        raise WaitIsOver(run.id)
    return workflow.answer(run, command)


def _note_blocked(run: Run, command: NoteBlocked) -> list[e.RunEvent]:
    require(run.status is RunStatus.FAILED, run, "only a failed run is continued")
    _require_not_continued(run)
    blocked = e.RunContinuationBlocked(cause=command.cause, reason=command.reason, remedy=command.remedy)
    return [] if run.blocked == blocked else [blocked]


def _resolve(run: Run, command: ResolveTool) -> list[e.RunEvent]:
    open_call = _uncertain_call(run, command.call_id)
    resolved = e.ToolResolved(
        call_id=open_call.call.id, tool=open_call.call.name, output=command.output, failed=command.failed
    )
    if open_call.resolved is None:
        return [resolved]
    if open_call.resolved != resolved:
        raise ResolvedOtherwise(
            f"tool call {command.call_id!r} of run {run.id} was resolved otherwise before"
        )
    return []


def _uncertain_call(run: Run, call_id: str) -> OpenCall:
    """The call as the run left it. Ids may repeat between steps: only those of the last one can be open."""
    for open_call in run.open_calls:
        if open_call.call.id == call_id:
            if not open_call.invoking:
                raise OutcomeKnown(f"tool call {call_id!r} of run {run.id} never began")
            return open_call
    asked = (m.tool_calls for m in run.transcript if isinstance(m, AssistantMessage))
    if any(call.id == call_id for calls in asked for call in calls):
        raise OutcomeKnown(f"tool call {call_id!r} of run {run.id} has its result on record")
    raise ToolCallNotFound(run.id, call_id)


def _require_not_continued(run: Run) -> None:
    if run.continued_by is not None:
        raise AlreadyContinued(run.id, run.continued_by)
