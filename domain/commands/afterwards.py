"""What may still be said of a run that has ended."""

from domain.command import Command
from domain.events import ContinuationBlock
from domain.ids import RunId
from domain.waiting import WaitOver


class ResolveTool(Command, frozen=True, kw_only=True):
    """Say what became of a call whose outcome its ended run left unknown."""

    call_id: str
    output: str
    failed: bool = False


class NoteContinued(Command, frozen=True, kw_only=True):
    """Have a run that was interrupted, or waits, name the run that goes on from it (CONT-5)."""

    by: RunId


class NoteBlocked(Command, frozen=True, kw_only=True):
    """Have an interrupted run say why it is not continued, and what can be done."""

    cause: ContinuationBlock
    reason: str
    remedy: str


class NoteWaitEnded(Command, frozen=True, kw_only=True):
    """Have a run that waits say that nobody will answer it any more."""

    cause: WaitOver
    reason: str = ""
