"""What may follow in a run: `decide` may refuse and changes nothing."""

from typing import assert_never

from domain import events as e
from domain.agent import Link
from domain.chain import decide as chain
from domain.commands import (
    AfterwardsCommand,
    AwaitApproval,
    AwaitInput,
    CancelQueuedRun,
    CancelRun,
    ChainCommand,
    CloseAbandoned,
    CompleteRun,
    CreateRun,
    ExhaustAttempts,
    FailRun,
    ModelCommand,
    Nudge,
    RequestCancel,
    RunCommand,
    SideCommand,
    StartRun,
    WorkflowCommand,
)
from domain.criterion import is_unjudged
from domain.decisions import afterwards, model, side, tools, waiting
from domain.failure import ErrorClass
from domain.messages import flaw_in, unanswered
from domain.refusals import InvalidInput as InvalidInput
from domain.refusals import OutOfTurn as OutOfTurn
from domain.refusals import RunAlreadyBegun as RunAlreadyBegun
from domain.refusals import RunAlreadyEnded as RunAlreadyEnded
from domain.refusals import require
from domain.run import Run, RunStatus
from domain.workflow import decide as workflow


def decide(run: Run, command: RunCommand) -> list[e.RunEvent]:  # noqa: C901 - one flat dispatch
    """Return the facts that follow, or raise a Conflict or Rejected. An empty list means "already so"."""
    if isinstance(command, CreateRun):
        return _create(run, command)
    if run.created is None:
        raise OutOfTurn(f"run {run.id} has not been created")
    if isinstance(command, AfterwardsCommand):
        return afterwards.decide(run, command)
    if run.status.ended:
        raise RunAlreadyEnded(run.id, run.status)
    if isinstance(command, SideCommand):
        return [*side.decide(run, command)]
    if isinstance(command, WorkflowCommand):
        return [*workflow.decide(run, command)]
    if isinstance(command, ModelCommand):
        return model.decide(run, command)
    if isinstance(command, ChainCommand):
        return chain.decide(run, command)
    match command:
        case StartRun():
            return _start(run, command)
        case RequestCancel():
            return [] if run.cancel_requested else [e.RunCancelRequested(reason=command.reason)]
        case Nudge():
            return _nudge(run, command)
        case AwaitApproval() | AwaitInput():
            return waiting.decide(run, command)
        case CompleteRun():
            return _complete(run)
        case FailRun(error=error):
            return chain.fail(run, error)
        case CancelRun():
            return [_cancelled(run, command)]
        case CloseAbandoned():
            return _close_abandoned(run, command)
        case CancelQueuedRun() | ExhaustAttempts():
            return _of_queue(run, command)
        case _:
            return tools.decide(run, command)


def _cancelled(run: Run, command: CancelRun) -> e.RunCancelled:
    """The end, with its receipt: what was under way, and what came of it."""
    call = run.calling or run.beside.calling
    return e.RunCancelled(
        reason=command.reason,
        model_call=None if call is None else Link(provider=call.provider, model=call.model),
        interrupted=run.interrupted,
        unknown=tuple(
            e.StoppedCall(call_id=one.call.id, tool=one.call.name) for one in run.open_calls if one.invoking
        ),
        descendants=command.descendants,
    )


def _close_abandoned(run: Run, command: CloseAbandoned) -> list[e.RunEvent]:
    """A cancel that was accepted is kept, also by who finds that its owner is gone (CANCEL-1)."""
    if run.cancel_requested:
        return [_cancelled(run, CancelRun(reason=run.cancel_reason))]
    if command.asked is None:
        return chain.fail(run, command.error)
    asked = e.RunCancelRequested(reason=command.asked)
    return [asked, _cancelled(run, CancelRun(reason=command.asked))]


def _of_queue(run: Run, command: CancelQueuedRun | ExhaustAttempts) -> list[e.RunEvent]:
    match command:
        case CancelQueuedRun(reason=reason):
            if run.status is not RunStatus.QUEUED:
                raise RunAlreadyBegun(run.id, run.status)
            return [e.RunCancelled(reason=reason)]
        case ExhaustAttempts(attempts=attempts):
            return _exhaust(run, attempts)
        case _:
            assert_never(command)


def _exhaust(run: Run, attempts: int) -> list[e.RunEvent]:
    given_up = [] if run.attempts_exhausted else [e.JobAttemptsExhausted(attempts=attempts)]
    if run.status is not RunStatus.QUEUED:
        return [*given_up]
    # What never began has no heartbeat, so reconciliation would leave it open for ever (RECON-2).
    never_begun = e.RunFailed(
        error=f"{attempts} workers took the run from its queue, and none came to begin it",
        error_type="interrupted",
        error_class=ErrorClass.INFRASTRUCTURE,
    )
    return [*given_up, never_begun]


def _create(run: Run, command: CreateRun) -> list[e.RunEvent]:
    if run.created is not None:
        raise OutOfTurn(f"run {run.id} exists already")
    flaw = _flaw_in(command)
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
            overrides=command.overrides,
            origin=command.origin,
            queue=command.queue,
            chain_root_run_id=command.chain_root_run_id,
            replay=command.replay,
            decisions=command.decisions,
        )
    ]


def _flaw_in(command: CreateRun) -> str | None:
    if not command.input:
        return "a run needs at least one message"
    open_calls = {call.id for call in unanswered(command.input)}
    if not command.decisions.keys() <= open_calls:
        return "something was decided of a call that does not wait for its result"
    return flaw_in(command.input, open_at_the_end=bool(command.decisions))


def _start(run: Run, command: StartRun) -> list[e.RunEvent]:
    if run.status is not RunStatus.QUEUED:
        raise RunAlreadyBegun(run.id, run.status)
    return [
        e.RunStarted(
            host=command.host, definition=command.definition, session_version=command.session_version
        )
    ]


def _nudge(run: Run, command: Nudge) -> list[e.RunEvent]:
    require(run.status is RunStatus.RUNNING and run.calling is None, run, "it is not between calls")
    require(run.beside.calling is None, run, "a side call is in flight")
    require(not run.open_calls and bool(run.answer), run, "its turn has not ended")
    return [e.TurnNudged(missing=command.missing, message=command.message)]


def _complete(run: Run) -> list[e.RunEvent]:
    if run.workflow is not None:
        return [e.RunCompleted(answer=workflow.answer_of(run, run.workflow))]
    require(run.calling is None and not run.open_calls and not run.failed, run, "its work is not done")
    require(bool(run.answer), run, "there is no answer")
    require(not is_unjudged(run), run, "its criterion is not known to be met")
    return [
        e.RunCompleted(
            answer=run.answer,
            finish=run.finish or e.FinishReason.STOP,
            fallbacks_taken=chain.fallbacks_taken(run),
        )
    ]
