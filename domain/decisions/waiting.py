"""How a run comes to wait for a person, and what may follow: another run, or nothing."""

from domain import events as e
from domain.commands import AwaitApproval, AwaitInput, NoteWaitEnded
from domain.refusals import WaitIsOver, require
from domain.run import Run, RunStatus


def decide(run: Run, command: AwaitApproval | AwaitInput) -> list[e.RunEvent]:
    require(run.status is RunStatus.RUNNING and run.calling is None, run, "it is not between calls")
    if isinstance(command, AwaitInput):
        require(bool(command.requests), run, "it asks nobody for anything")
        return [e.RunAwaitingInput(requests=command.requests)]
    asked = {one.call.id for one in run.open_calls if not one.invoking}
    awaited = {call.call_id for call in command.calls}
    require(bool(awaited) and awaited <= asked, run, "it waits for a call that it does not have open")
    return [e.RunAwaitingApproval(calls=command.calls)]


def note_wait_ended(run: Run, command: NoteWaitEnded) -> list[e.RunEvent]:
    require(run.status.awaits, run, "it waits for nobody")
    if run.wait_over is not None or run.continued_by is not None:
        raise WaitIsOver(run.id)
    return [e.RunWaitEnded(cause=command.cause, reason=command.reason)]
