"""What may be said of an approval: asked for, and settled once."""

from domain.event import Event
from domain.ids import RunId
from domain.waiting import AwaitedCall, CallDecision


class ApprovalRequested(Event, frozen=True, kw_only=True, tag="approval.requested.v1"):
    """A run waits for a decision on these calls, from the append on that ended it (TOOL-2).

    `expires_after_s` after this was recorded nobody can decide any more; None: it never expires.
    """

    run_id: RunId
    agent: str
    session_id: str | None = None
    calls: tuple[AwaitedCall, ...]
    expires_after_s: float | None = None


class ApprovalDecided(Event, frozen=True, kw_only=True, tag="approval.decided.v1"):
    """Somebody decided of each call, and the run `opens` goes on with that: it is in the same append.

    `by`: the API key that it was asked with; None for a client on the service's machine without one.
    """

    run_id: RunId
    decisions: dict[str, CallDecision]
    opens: RunId
    by: str | None = None
    reason: str = ""


class ApprovalExpired(Event, frozen=True, kw_only=True, tag="approval.expired.v1"):
    """Nobody decided in time, and nobody can any more."""

    run_id: RunId


class ApprovalWithdrawn(Event, frozen=True, kw_only=True, tag="approval.withdrawn.v1"):
    """The run that waited was cancelled, so there is nothing to decide."""

    run_id: RunId
    by: str | None = None
    reason: str = ""


ApprovalEvent = ApprovalRequested | ApprovalDecided | ApprovalExpired | ApprovalWithdrawn
