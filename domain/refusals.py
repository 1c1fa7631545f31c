"""Why a run refuses a command."""

from domain.errors import Conflict, NotFound, Rejected
from domain.ids import RunId
from domain.run import Run, RunStatus


class RunAlreadyEnded(Conflict):
    """The run is closed and a closed run is never rewritten. Start a new one."""

    code = "run_already_ended"

    def __init__(self, run_id: RunId, status: RunStatus) -> None:
        super().__init__(f"run {run_id} has already ended: {status}")
        self.status = status


class RunNotEnded(Conflict):
    """The run is still going on; what is asked is for afterwards. Wait for its end, or cancel it."""

    code = "run_not_ended"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"run {run_id} has not ended yet")


class AlreadyContinued(Conflict):
    """Another run goes on in place of this one, and one is enough."""

    code = "already_continued"

    def __init__(self, run_id: RunId, by: RunId) -> None:
        super().__init__(f"run {run_id} was already continued by run {by}")
        self.by = by


class WaitIsOver(Conflict):
    """The run waits no more: another goes on from it, or nobody will answer it."""

    code = "wait_is_over"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"run {run_id} waits for nobody any more")


class ToolCallNotFound(NotFound):
    """The run has no tool call of this id."""

    code = "tool_call_not_found"

    def __init__(self, run_id: RunId, call_id: str) -> None:
        super().__init__(f"run {run_id} has no tool call {call_id!r}")


class OutcomeKnown(Conflict):
    """What came of the call is on record, or it never began. There is nothing to find out."""

    code = "outcome_known"


class ResolvedOtherwise(Conflict):
    """Somebody has said already what came of the call, and it was something else. Their word stands."""

    code = "resolved_otherwise"


class OutOfTurn(Conflict):
    """The command does not fit what the run is doing. This is a defect of the caller, not of the input."""

    code = "out_of_turn"


class RunAlreadyBegun(OutOfTurn):
    """Somebody began the run before. Leave it to its owner; whether that lives is not to be seen in it."""

    code = "run_already_begun"

    def __init__(self, run_id: RunId, status: RunStatus) -> None:
        super().__init__(f"run {run_id} is already {status}")


class InvalidInput(Rejected):
    """No model would take these messages. Correct them."""

    code = "invalid_input"


def require(holds: bool, run: Run, why_not: str) -> None:
    if not holds:
        raise OutOfTurn(f"run {run.id} cannot do that: {why_not}")
