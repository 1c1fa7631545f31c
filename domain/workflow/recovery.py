"""What becomes of a workflow's run of the queue whose host or worker is gone (WF-4)."""

from collections.abc import Sequence

import msgspec

from domain.commands import CloseAbandoned
from domain.continuation import PastRun
from domain.decide import decide
from domain.events import RunCancelled, RunEvent, RunKind
from domain.evolve import fold
from domain.failure import ErrorClass, RunError
from domain.queueing import QueueSpec
from domain.run import Run
from domain.workflow.resume import GoingOn, Next, resumed, was_interrupted


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """How the interrupted run is closed, if that is to be done, and the run that goes on from it, if any."""

    closing: tuple[RunEvent, ...] = ()
    going_on: GoingOn | None = None


def is_recoverable(run: Run) -> bool:
    """Whether its job may go on from it: it is of a workflow, and no connection waits for it (WF-4)."""
    created = run.created
    return created is not None and created.kind is RunKind.WORKFLOW and created.queue is not None


def recover(
    chain: Sequence[PastRun], after: Next, *, max_attempts: int, is_last: bool, asked: str | None = None
) -> Recovery | None:
    """None: there is nothing to do for the last run of the chain. It came to an end, or waits for a person.

    `max_attempts`: how many continuations one chain may have. `is_last`: this is the last attempt of the job,
    and nobody would close what it began. `asked`: the reason of a cancel that nobody has carried out.
    """
    past = chain[-1]
    run = fold(past.run_id, past.events)
    if run.continued_by is not None or (run.status.ended and not was_interrupted(run)):
        return None
    made = sum(was_interrupted(fold(one.run_id, one.events)) for one in chain[:-1])
    used_up = is_last or made >= max_attempts
    closing = () if run.status.ended else tuple(decide(run, _close(run, used_up, max_attempts, asked)))
    if used_up or any(isinstance(event, RunCancelled) for event in closing):
        return Recovery(closing=closing) if closing else None
    closed = PastRun(run_id=past.run_id, events=(*past.events, *closing))
    return Recovery(closing=closing, going_on=resumed((*chain[:-1], closed), None, after))


def queue_after(queue: QueueSpec) -> QueueSpec:
    """How a run is queued that goes on from one that was queued like this: with the attempts left."""
    return msgspec.structs.replace(queue, max_attempts=max(1, queue.max_attempts - 1))


def _close(run: Run, used_up: bool, max_attempts: int, asked: str | None) -> CloseAbandoned:
    told = "the worker that had the run is gone; "
    told += (
        f"it is not gone on from again (workflows.max_resume_attempts is {max_attempts})"
        if used_up
        else "another run goes on from its latest checkpoint"
    )
    error = RunError(message=told, type="interrupted", error_class=ErrorClass.INFRASTRUCTURE)
    return CloseAbandoned(error=error, asked=asked)
