"""An approval: what a run asked to be allowed, and what came of that. It has the id of the run (TOOL-2)."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

import msgspec

from domain import events as e
from domain.commands import AwaitApproval, CreateRun
from domain.errors import Conflict, NotFound, Rejected
from domain.events import approval as a
from domain.ids import RunId, Version
from domain.queueing import QueueSpec
from domain.run import Run
from domain.waiting import CallDecision

_LONGEST_S = 366 * 86400.0 * 100


class ApprovalNotFound(NotFound):
    """No run of this tenant with this id waits, or has waited, for an approval."""

    code = "approval_not_found"

    def __init__(self, run_id: object) -> None:
        super().__init__(f"there is no approval {run_id}")


class DecidedOtherwise(Conflict):
    """Somebody has decided already, and differently. Their word stands."""

    code = "approval_decided_otherwise"

    def __init__(self, run_id: RunId, opened: RunId) -> None:
        super().__init__(f"approval {run_id} was decided otherwise before; run {opened} goes on with that")


class ApprovalClosed(Conflict):
    """There is nothing to decide any more. Submit the run's input again, if it is still wanted."""

    code = "approval_closed"

    def __init__(self, run_id: RunId, state: "ApprovalState") -> None:
        super().__init__(f"approval {run_id} is {state}, so nothing can be decided any more")


class IncompleteDecision(Rejected):
    """The decision leaves calls out, or names some that are not waited for. Decide of each that is listed."""

    code = "incomplete_decision"
    field = "calls"


class ApprovalState(StrEnum):
    PENDING = "pending"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """An approval as its events have it."""

    version: Version = Version(0)
    state: ApprovalState = ApprovalState.PENDING
    requested: a.ApprovalRequested | None = None
    expires_at: datetime | None = None
    decided: a.ApprovalDecided | None = None

    def is_overdue(self, now: datetime) -> bool:
        """Whether it should be expired by now, by the database's clock."""
        if self.state is not ApprovalState.PENDING or self.expires_at is None:
            return False
        return now >= self.expires_at


class Decide(msgspec.Struct, frozen=True, kw_only=True):
    """Say of each call whether it may be made. `verdicts`: by call; `verdict`: of all that it leaves out."""

    verdict: CallDecision | None = None
    verdicts: Mapping[str, CallDecision] = {}
    opens: RunId
    by: str | None = None
    reason: str = ""


class Expire(msgspec.Struct, frozen=True):
    """Nobody decided in time."""


class Withdraw(msgspec.Struct, frozen=True, kw_only=True):
    """The run that waits is not wanted any more."""

    by: str | None = None
    reason: str = ""


def request(run: Run, ending: AwaitApproval, expires_after_s: float) -> a.ApprovalRequested:
    """What is asked with the end of a run that waits. Zero seconds or less: for ever."""
    created = run.created
    return a.ApprovalRequested(
        run_id=run.id,
        agent=created.agent if created else "",
        session_id=created.session_id if created else None,
        calls=ending.calls,
        expires_after_s=expires_after_s if expires_after_s > 0 else None,
    )


def decide(approval: Approval, command: Decide | Expire | Withdraw) -> list[a.ApprovalEvent]:
    """Return the facts that follow, or raise. An empty list: just that was decided before."""
    requested = approval.requested
    if requested is None:
        raise ApprovalNotFound("of that id")
    match command:
        case Decide():
            return _decide(approval, requested, command)
        case Expire():
            _require_pending(approval, requested.run_id)
            return [a.ApprovalExpired(run_id=requested.run_id)]
        case Withdraw():
            _require_pending(approval, requested.run_id)
            said = a.ApprovalWithdrawn(run_id=requested.run_id, by=command.by, reason=command.reason)
            return [said]
        case _:
            assert_never(command)


def evolve(approval: Approval, recorded: e.Recorded[a.ApprovalEvent]) -> Approval:
    """Fold one fact in."""
    after = msgspec.structs.replace(approval, version=Version(approval.version + 1))
    match recorded.event:
        case a.ApprovalRequested() as requested:
            return msgspec.structs.replace(after, requested=requested, expires_at=expiry_of(recorded))
        case a.ApprovalDecided() as decided:
            return msgspec.structs.replace(after, state=ApprovalState.DECIDED, decided=decided)
        case a.ApprovalExpired():
            return msgspec.structs.replace(after, state=ApprovalState.EXPIRED)
        case a.ApprovalWithdrawn():
            return msgspec.structs.replace(after, state=ApprovalState.WITHDRAWN)
        case _:
            assert_never(recorded.event)


def fold(recorded: Iterable[e.Recorded[a.ApprovalEvent]]) -> Approval:
    approval = Approval()
    for one in recorded:
        approval = evolve(approval, one)
    return approval


def expiry_of(recorded: e.Recorded[e.Event]) -> datetime | None:
    """When a request expires, counted from when it was recorded."""
    event = recorded.event
    if not isinstance(event, a.ApprovalRequested) or event.expires_after_s is None:
        return None
    return recorded.at + timedelta(seconds=min(max(0.0, event.expires_after_s), _LONGEST_S))


def run_opened_by(run: Run, decided: a.ApprovalDecided, max_attempts: int) -> CreateRun:
    """The run that goes on from one that waits: from where it stopped, with what was decided.

    It is left to a worker, so that a host that drains, or dies the moment after, does not matter.
    """
    created = run.created
    if created is None:
        raise ApprovalNotFound(run.id)
    before = created.queue or QueueSpec(max_attempts=max_attempts)
    return CreateRun(
        tenant=created.tenant,
        kind=created.kind,
        agent=created.agent,
        input=run.transcript,
        parameters=created.parameters,
        session_id=created.session_id,
        continued_from_run_id=run.id,
        chain_root_run_id=run.chain_root,
        streaming=created.streaming,
        overrides=created.overrides,
        origin=created.origin,
        queue=msgspec.structs.replace(before, source=None),
        decisions=decided.decisions,
    )


def _decide(approval: Approval, requested: a.ApprovalRequested, command: Decide) -> list[a.ApprovalEvent]:
    decisions = _of_each(requested, command)
    if approval.decided is not None:
        if _same(approval.decided.decisions, decisions):
            return []
        raise DecidedOtherwise(requested.run_id, approval.decided.opens)
    _require_pending(approval, requested.run_id)
    return [
        a.ApprovalDecided(
            run_id=requested.run_id,
            decisions=decisions,
            opens=command.opens,
            by=command.by,
            reason=command.reason,
        )
    ]


def _of_each(requested: a.ApprovalRequested, command: Decide) -> dict[str, CallDecision]:
    asked = [call.call_id for call in requested.calls]
    if unknown := [call_id for call_id in command.verdicts if call_id not in asked]:
        raise IncompleteDecision(
            f"no call {unknown[0]!r} waits for a decision; there are: {', '.join(asked)}"
        )
    decisions = {call_id: command.verdicts.get(call_id, command.verdict) for call_id in asked}
    if missing := [call_id for call_id, decision in decisions.items() if decision is None]:
        raise IncompleteDecision(f"nothing was decided of: {', '.join(missing)}")
    return {call_id: decision for call_id, decision in decisions.items() if decision is not None}


def _same(one: Mapping[str, CallDecision], other: Mapping[str, CallDecision]) -> bool:
    """Reasons are words; what was decided is what counts."""
    return {key: said.approved for key, said in one.items()} == {
        key: said.approved for key, said in other.items()
    }


def _require_pending(approval: Approval, run_id: RunId) -> None:
    if approval.state is not ApprovalState.PENDING:
        raise ApprovalClosed(run_id, approval.state)
