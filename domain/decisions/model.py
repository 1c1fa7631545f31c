"""What may follow when a model is asked: it waits for a place, it says something, it replies or it fails."""

from typing import assert_never

from domain import events as e
from domain.commands import (
    BeginModelCall,
    ModelCommand,
    RecordModelFailure,
    RecordQueueing,
    RecordReply,
    RecordText,
)
from domain.refusals import OutOfTurn, require
from domain.run import ModelCall, Run, RunStatus


def decide(run: Run, command: ModelCommand) -> list[e.RunEvent]:
    match command:
        case BeginModelCall():
            return _begin(run, command)
        case RecordQueueing():
            return _queue(run, command)
        case RecordText():
            return _text(run, command)
        case RecordReply():
            return _reply(run, command)
        case RecordModelFailure():
            return _failure(run, command)
        case _:
            assert_never(command)


def _begin(run: Run, command: BeginModelCall) -> list[e.RunEvent]:
    require(run.status is RunStatus.RUNNING, run, "it is not running")
    require(run.calling is None and run.beside.calling is None, run, "a model call is in flight")
    require(not run.open_calls, run, "tool calls are without a result")
    require(run.standing.exhausted is None, run, "no link is left")
    again = bool(run.failed)
    require(command.step == (run.step if again else run.step + 1), run, f"step {command.step} is not next")
    return [
        e.ModelCallStarted(
            step=command.step, attempt=len(run.failed) + 1, provider=command.provider, model=command.model
        )
    ]


def _queue(run: Run, command: RecordQueueing) -> list[e.RunEvent]:
    call = _call_in_flight(run, command.step)
    if call.queued:
        return []
    return [e.ModelCallQueued(step=call.step, attempt=call.attempt, provider=call.provider, model=call.model)]


def _text(run: Run, command: RecordText) -> list[e.RunEvent]:
    call = _call_in_flight(run, command.step)
    return [e.TextDelta(step=call.step, text=command.text)] if command.text else []


def _reply(run: Run, command: RecordReply) -> list[e.RunEvent]:
    if _has_reply(run, command.step):
        return []  # told twice; the first reply already counted
    call = _call_in_flight(run, command.step)
    message = command.message
    require(bool(message.content or message.tool_calls), run, "an empty reply is a failed call")
    ids = [call.id for call in message.tool_calls]
    require(len(set(ids)) == len(ids), run, "two tool calls of the reply have one id")
    return [
        e.ModelReplied(
            step=call.step,
            provider=call.provider,
            model=call.model,
            message=message,
            finish=command.finish,
            usage=command.usage,
            cost=command.cost,
            currency=command.currency,
            cached=command.cached,
        )
    ]


def _failure(run: Run, command: RecordModelFailure) -> list[e.RunEvent]:
    call = _call_in_flight(run, command.step)
    return [
        e.ModelCallFailed(
            step=call.step,
            attempt=call.attempt,
            provider=call.provider,
            model=call.model,
            failure_class=command.failure_class,
            failure=command.failure,
            text=command.text,
        )
    ]


def _has_reply(run: Run, step: int) -> bool:
    unanswered = run.step if run.calling or run.failed else run.step + 1
    return 1 <= step < unanswered


def _call_in_flight(run: Run, step: int) -> ModelCall:
    if run.calling is None or run.calling.step != step:
        raise OutOfTurn(f"run {run.id} has no model call of step {step} in flight")
    return run.calling
