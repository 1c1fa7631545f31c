"""What may follow in a run: `decide` may refuse and changes nothing."""

from typing import assert_never

from domain import events as e
from domain.commands import (
    BeginModelCall,
    CancelRun,
    CompleteRun,
    CreateRun,
    FailRun,
    InvokeTool,
    RecordModelFailure,
    RecordReply,
    RecordText,
    RecordToolFailure,
    RecordToolOutput,
    RecordUnknownOutcome,
    RequestCancel,
    RunCommand,
    StartRun,
)
from domain.errors import Conflict, Rejected
from domain.ids import RunId
from domain.messages import ToolMessage, flaw_in
from domain.run import ModelCall, OpenCall, Run, RunStatus


class RunAlreadyEnded(Conflict):
    """The run is closed and a closed run is never rewritten. Start a new one."""

    code = "run_already_ended"

    def __init__(self, run_id: RunId, status: RunStatus) -> None:
        super().__init__(f"run {run_id} has already ended: {status}")
        self.status = status


class OutOfTurn(Conflict):
    """The command does not fit what the run is doing. This is a defect of the caller, not of the input."""

    code = "out_of_turn"


class InvalidInput(Rejected):
    """No model would take these messages. Correct them."""

    code = "invalid_input"


def decide(run: Run, command: RunCommand) -> list[e.RunEvent]:  # noqa: C901 - one flat dispatch
    """Return the facts that follow, or raise a Conflict or Rejected. An empty list means "already so"."""
    if isinstance(command, CreateRun):
        return _create(run, command)
    if run.created is None:
        raise OutOfTurn(f"run {run.id} has not been created")
    if run.status.ended:
        raise RunAlreadyEnded(run.id, run.status)
    match command:
        case StartRun():
            return _start(run, command)
        case BeginModelCall():
            return _begin_model_call(run, command)
        case RecordText():
            return _record_text(run, command)
        case RecordReply():
            return _record_reply(run, command)
        case RecordModelFailure():
            return _record_model_failure(run, command)
        case InvokeTool():
            return _invoke_tool(run, command)
        case RecordToolOutput():
            return _record_tool_output(run, command)
        case RecordToolFailure():
            return _record_tool_failure(run, command)
        case RecordUnknownOutcome():
            return _record_unknown_outcome(run, command)
        case RequestCancel():
            return [] if run.cancel_requested else [e.RunCancelRequested(reason=command.reason)]
        case CompleteRun():
            return _complete(run)
        case FailRun(error=error):
            return [e.RunFailed(error=error.message, error_type=error.type, error_class=error.error_class)]
        case CancelRun():
            return [e.RunCancelled(reason=command.reason)]
        case _:
            assert_never(command)


_FAILURES_OF_A_BODY = frozenset({e.ToolFailure.RAISED, e.ToolFailure.TIMED_OUT})


def _create(run: Run, command: CreateRun) -> list[e.RunEvent]:
    if run.created is not None:
        raise OutOfTurn(f"run {run.id} exists already")
    flaw = flaw_in(command.input) if command.input else "a run needs at least one message"
    if flaw:
        raise InvalidInput(flaw)
    return [
        e.RunCreated(
            tenant=command.tenant,
            kind=command.kind,
            agent=command.agent,
            input=command.input,
            parameters=command.parameters,
            session_id=command.session_id,
            root_run_id=command.root_run_id,
            parent_run_id=command.parent_run_id,
            depth=command.depth,
            continued_from_run_id=command.continued_from_run_id,
            streaming=command.streaming,
        )
    ]


def _start(run: Run, command: StartRun) -> list[e.RunEvent]:
    if run.status is not RunStatus.QUEUED:
        raise OutOfTurn(f"run {run.id} is already {run.status}")
    return [
        e.RunStarted(
            host=command.host, definition=command.definition, session_version=command.session_version
        )
    ]


def _begin_model_call(run: Run, command: BeginModelCall) -> list[e.RunEvent]:
    _require(run.status is RunStatus.RUNNING, run, "it is not running")
    _require(run.calling is None, run, "a model call is in flight")
    _require(not run.open_calls, run, "tool calls are without a result")
    again = bool(run.failed)
    _require(command.step == (run.step if again else run.step + 1), run, f"step {command.step} is not next")
    return [
        e.ModelCallStarted(
            step=command.step, attempt=len(run.failed) + 1, provider=command.provider, model=command.model
        )
    ]


def _record_text(run: Run, command: RecordText) -> list[e.RunEvent]:
    call = _call_in_flight(run, command.step)
    return [e.TextDelta(step=call.step, text=command.text)] if command.text else []


def _record_reply(run: Run, command: RecordReply) -> list[e.RunEvent]:
    if _has_reply(run, command.step):
        return []  # told twice; the first reply already counted
    call = _call_in_flight(run, command.step)
    message = command.message
    _require(bool(message.content or message.tool_calls), run, "an empty reply is a failed call")
    ids = [call.id for call in message.tool_calls]
    _require(len(set(ids)) == len(ids), run, "two tool calls of the reply have one id")
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
        )
    ]


def _record_model_failure(run: Run, command: RecordModelFailure) -> list[e.RunEvent]:
    call = _call_in_flight(run, command.step)
    return [
        e.ModelCallFailed(
            step=call.step,
            attempt=call.attempt,
            provider=call.provider,
            model=call.model,
            failure_class=command.failure_class,
            failure=command.failure,
        )
    ]


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
    _require(open_call.invoking, run, f"tool call {command.call_id!r} was never invoked")
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
        _require(open_call.invoking, run, f"tool call {command.call_id!r} was never invoked")
    return [
        e.ToolFailed(
            call_id=open_call.call.id,
            tool=open_call.call.name,
            failure=command.failure,
            output=command.output,
            duration_ms=command.duration_ms,
        )
    ]


def _record_unknown_outcome(run: Run, command: RecordUnknownOutcome) -> list[e.RunEvent]:
    open_call = _open_call(run, command.call_id)
    _require(open_call.invoking, run, f"tool call {command.call_id!r} was never invoked")
    if open_call.left_behind:
        return []
    return [e.ToolOutcomeUnknown(call_id=open_call.call.id, tool=open_call.call.name, reason=command.reason)]


def _complete(run: Run) -> list[e.RunEvent]:
    _require(run.calling is None and not run.open_calls and not run.failed, run, "its work is not done")
    _require(run.finish is not None and bool(run.answer), run, "there is no answer")
    return [e.RunCompleted(answer=run.answer, finish=run.finish or e.FinishReason.STOP)]


def _require(holds: bool, run: Run, why_not: str) -> None:
    if not holds:
        raise OutOfTurn(f"run {run.id} cannot do that: {why_not}")


def _has_reply(run: Run, step: int) -> bool:
    unanswered = run.step if run.calling or run.failed else run.step + 1
    return 1 <= step < unanswered


def _call_in_flight(run: Run, step: int) -> ModelCall:
    if run.calling is None or run.calling.step != step:
        raise OutOfTurn(f"run {run.id} has no model call of step {step} in flight")
    return run.calling


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
