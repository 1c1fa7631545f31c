"""Folding facts into the state of a run: `evolve` never refuses. `decide` says what may follow."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, assert_never

import msgspec

from domain import events as e
from domain.beside import evolve as evolve_beside
from domain.chain.standing import evolve as evolve_standing
from domain.events.side import AnswerSentBack, SideCallReplied
from domain.events.workflow import WorkflowOpened
from domain.failure import RunError
from domain.ids import RunId, Version
from domain.messages import (
    AssistantMessage,
    Message,
    ToolMessage,
    Usage,
    UserMessage,
    unanswered,
    with_result,
)
from domain.run import ModelCall, OpenCall, Run, RunStatus
from domain.workflow.state import WorkflowRun, opened
from domain.workflow.state import evolve as evolve_workflow


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
