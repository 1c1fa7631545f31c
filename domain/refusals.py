"""Why a run refuses a command."""

from domain.errors import Conflict, Rejected
from domain.ids import RunId
from domain.run import Run, RunStatus


class RunAlreadyEnded(Conflict):
    """The run is closed and a closed run is never rewritten. Start a new one."""

    code = "run_already_ended"

    def __init__(self, run_id: RunId, status: RunStatus) -> None:
        super().__init__(f"run {run_id} has already ended: {status}")
        self.status = status


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
