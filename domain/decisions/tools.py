"""What may follow a reply that asks for tools: an invocation, and one result for each call."""

from typing import assert_never

from domain import events as e
from domain.commands import (
    AnswerToolCall,
    InvokeTool,
    NoteChild,
    RecordToolFailure,
    RecordToolOutput,
    RecordUnknownOutcome,
    ReportUsage,
)
from domain.messages import ToolMessage
from domain.refusals import OutOfTurn, require
from domain.run import OpenCall, Run, RunStatus

ToolCommand = (
    InvokeTool
    | RecordToolOutput
    | RecordToolFailure
    | AnswerToolCall
    | RecordUnknownOutcome
    | NoteChild
    | ReportUsage
)

_FAILURES_OF_A_BODY = frozenset({e.ToolFailure.RAISED, e.ToolFailure.TIMED_OUT})


def decide(run: Run, command: ToolCommand) -> list[e.RunEvent]:
    match command:
        case InvokeTool():
            return _invoke_tool(run, command)
        case RecordToolOutput():
            return _record_tool_output(run, command)
        case RecordToolFailure():
            return _record_tool_failure(run, command)
        case AnswerToolCall():
            return _answer_tool_call(run, command)
        case RecordUnknownOutcome():
            return _record_unknown_outcome(run, command)
        case NoteChild():
            return _note_child(run, command)
        case ReportUsage():
            return _report_usage(run, command)
        case _:
            assert_never(command)


def _invoke_tool(run: Run, command: InvokeTool) -> list[e.RunEvent]:
    open_call = _open_call(run, command.call_id)
    if open_call.invoking:
        return []
    return [
        e.ToolInvoking(
            call_id=open_call.call.id,
            tool=open_call.call.name,
            arguments=open_call.call.arguments,
            effect=command.effect,
            call_key=command.call_key,
            safe_to_repeat=command.safe_to_repeat,
        )
    ]


def _record_tool_output(run: Run, command: RecordToolOutput) -> list[e.RunEvent]:
    open_call = _unsettled_call(run, command.call_id)
    if open_call is None:
        return []
    require(open_call.invoking, run, f"tool call {command.call_id!r} was never invoked")
    return [
        e.ToolReturned(
            call_id=open_call.call.id,
            tool=open_call.call.name,
            output=command.output,
            duration_ms=command.duration_ms,
            truncated=command.truncated,
        )
    ]


def _record_tool_failure(run: Run, command: RecordToolFailure) -> list[e.RunEvent]:
    open_call = _unsettled_call(run, command.call_id)
    if open_call is None:
        return []
    if command.failure in _FAILURES_OF_A_BODY:
        require(open_call.invoking, run, f"tool call {command.call_id!r} was never invoked")
    return [
        e.ToolFailed(
            call_id=open_call.call.id,
            tool=open_call.call.name,
            failure=command.failure,
            output=command.output,
            duration_ms=command.duration_ms,
        )
    ]


def _answer_tool_call(run: Run, command: AnswerToolCall) -> list[e.RunEvent]:
    open_call = _unsettled_call(run, command.call_id)
    if open_call is None:
        return []
    require(not open_call.invoking, run, f"tool call {command.call_id!r} was invoked")
    result = command.result
    return [
        e.ToolAnswered(
            call_id=open_call.call.id,
            tool=open_call.call.name,
            arguments=open_call.call.arguments,
            output=result.output,
            failed=result.failed,
            recorded_run_id=result.run_id,
            recorded_call_id=result.call_id,
        )
    ]


def _record_unknown_outcome(run: Run, command: RecordUnknownOutcome) -> list[e.RunEvent]:
    open_call = _open_call(run, command.call_id)
    require(open_call.invoking, run, f"tool call {command.call_id!r} was never invoked")
    if open_call.left_behind:
        return []
    return [e.ToolOutcomeUnknown(call_id=open_call.call.id, tool=open_call.call.name, reason=command.reason)]


def _note_child(run: Run, command: NoteChild) -> list[e.RunEvent]:
    require(run.status is RunStatus.RUNNING, run, "it is not running")
    return [e.ChildRunStarted(run_id=command.run_id, agent=command.agent, cause=command.cause)]


def _report_usage(run: Run, command: ReportUsage) -> list[e.RunEvent]:
    require(run.status is RunStatus.RUNNING, run, "it is not running")
    return [
        e.UsageReported(
            cause=command.cause,
            kind=command.kind,
            amount=command.amount,
            currency=command.currency,
            counted=command.counted,
        )
    ]


def _open_call(run: Run, call_id: str) -> OpenCall:
    open_call = _unsettled_call(run, call_id)
    if open_call is None:
        raise OutOfTurn(f"tool call {call_id!r} of run {run.id} has its result already")
    return open_call


def _unsettled_call(run: Run, call_id: str) -> OpenCall | None:
    """The open call, or None when it has its result. Ids may repeat between steps: open ones come first."""
    for open_call in run.open_calls:
        if open_call.call.id == call_id:
            return open_call
    if any(isinstance(m, ToolMessage) and m.tool_call_id == call_id for m in run.transcript):
        return None
    raise OutOfTurn(f"run {run.id} has no tool call {call_id!r}")
