"""What may follow beside the agent's own calls: a summary of its context, a verdict on its answer."""

from typing import assert_never

from domain.beside import SideCall
from domain.commands import side as c
from domain.events import side as s
from domain.failure import RunError
from domain.refusals import OutOfTurn, require
from domain.run import Run, RunStatus


def decide(run: Run, command: c.SideCommand) -> list[s.SideEvent]:  # noqa: C901 - one flat dispatch
    match command:
        case c.BeginSideCall():
            return [_begun(run, command)]
        case c.RecordSideQueueing():
            return _queued(run)
        case c.RecordSideReply():
            return [_replied(run, command)]
        case c.RecordSideFailure():
            return [_failed(run, command)]
        case c.UseSideFallback():
            return [_moved(run, command)]
        case c.CompactContext():
            return _compacted(run, command)
        case c.GiveUpCompaction(error=error):
            return _gave_up(run, error)
        case c.JudgeAnswer(met=met, reason=reason):
            return _judged(run, met, reason)
        case c.SendBack(message=message):
            return [_sent_back(run, message)]
        case _:
            assert_never(command)


def _begun(run: Run, command: c.BeginSideCall) -> s.SideCallStarted:
    _require_between_calls(run)
    if command.purpose is s.SidePurpose.JUDGE:
        require(bool(run.answer), run, "there is no answer to judge")
    return s.SideCallStarted(
        purpose=command.purpose,
        attempt=run.beside.attempts + 1,
        provider=command.provider,
        model=command.model,
    )


def _queued(run: Run) -> list[s.SideEvent]:
    call = _in_flight(run)
    if call.queued:
        return []
    return [
        s.SideCallQueued(purpose=call.purpose, attempt=call.attempt, provider=call.provider, model=call.model)
    ]


def _replied(run: Run, command: c.RecordSideReply) -> s.SideCallReplied:
    call = _in_flight(run)
    return s.SideCallReplied(
        purpose=call.purpose,
        attempt=call.attempt,
        provider=call.provider,
        model=call.model,
        usage=command.usage,
        cost=command.cost,
        currency=command.currency,
        cached=command.cached,
        flaw=command.flaw,
    )


def _failed(run: Run, command: c.RecordSideFailure) -> s.SideCallFailed:
    call = _in_flight(run)
    return s.SideCallFailed(
        purpose=call.purpose,
        attempt=call.attempt,
        provider=call.provider,
        model=call.model,
        failure_class=command.failure_class,
        failure=command.failure,
    )


def _moved(run: Run, command: c.UseSideFallback) -> s.SideFallbackUsed:
    _require_between_calls(run)
    require(run.beside.failed, run, "no side call has failed")
    return s.SideFallbackUsed(
        purpose=command.purpose,
        primary=command.primary,
        fallback=command.fallback,
        failure_class=command.failure_class,
        reason=command.reason,
        skipped=command.skipped,
    )


def _compacted(run: Run, command: c.CompactContext) -> list[s.SideEvent]:
    """A summary that stands for more than the last one. Half a group of messages it can never stand for."""
    _require_between_calls(run)
    shown = run.beside.context.summary
    if shown == command.summary:
        return []
    longer = shown is None or shown.messages < command.summary.messages
    require(longer, run, "more than that is summarised already")
    return [
        s.ContextCompacted(
            summary=command.summary, context_tokens=command.context_tokens, reused=command.reused
        )
    ]


def _gave_up(run: Run, error: RunError) -> list[s.SideEvent]:
    _require_between_calls(run)
    if run.beside.context.failed_after == run.step:
        return []
    return [s.CompactionFailed(error=error.message, error_type=error.type, error_class=error.error_class)]


def _judged(run: Run, met: bool, reason: str) -> list[s.SideEvent]:
    _require_between_calls(run)
    require(bool(run.answer), run, "there is no answer to judge")
    if run.beside.criterion.verdict is not None:
        return []
    return [s.CriterionJudged(met=met, reason=reason)]


def _sent_back(run: Run, message: str) -> s.AnswerSentBack:
    _require_between_calls(run)
    standing = run.beside.criterion
    require(
        standing.verdict is not None and not standing.verdict.met, run, "no judge has found fault with it"
    )
    return s.AnswerSentBack(round=standing.rounds + 1, message=message)


def _in_flight(run: Run) -> SideCall:
    if run.beside.calling is None:
        raise OutOfTurn(f"run {run.id} has no side call in flight")
    return run.beside.calling


def _require_between_calls(run: Run) -> None:
    require(run.status is RunStatus.RUNNING, run, "it is not running")
    require(run.calling is None and run.beside.calling is None, run, "a model call is in flight")
    require(not run.open_calls, run, "tool calls are without a result")
    require(run.standing.exhausted is None, run, "no link is left")
