"""An approval as its readers see it, folded from its events."""

from collections.abc import Iterable
from datetime import datetime
from typing import get_args

import msgspec

from domain import events as e
from domain.approval import ApprovalState, expiry_of
from domain.ids import RunId
from projections.base import Fact, Kinds
from projections.values import storable

APPROVAL_EVENTS: Kinds = frozenset(get_args(e.ApprovalEvent))


class CallToApprove(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that waits for a decision, or had one."""

    call_id: str
    tool: str
    arguments: str
    effect: str
    approved: bool | None = None
    """Null: nobody has decided, or nobody ever will."""
    reason: str | None = None


class ApprovalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The approval JSON. Its id is that of the run that waits."""

    id: RunId
    tenant: str
    agent: str
    session_id: str | None = None
    state: ApprovalState = ApprovalState.PENDING
    calls: tuple[CallToApprove, ...]
    events: int
    requested_at: datetime
    expires_at: datetime | None = None
    """By the database's clock. Null: it waits for as long as it takes."""
    settled_at: datetime | None = None
    settled_by: str | None = None
    """The API key of who decided or withdrew it; null for a client on this machine without one."""
    reason: str | None = None
    opened_run_id: RunId | None = None
    """The run that goes on with what was decided."""


def approval_of(stream: Iterable[Fact]) -> ApprovalRecord | None:
    """The record of a whole stream; None if it is no approval's."""
    record = None
    for recorded in stream:
        record = advance(record, recorded)
    return record


def advance(record: ApprovalRecord | None, recorded: Fact) -> ApprovalRecord | None:
    """Fold the next event of the stream in. What is not of an approval changes nothing."""
    match recorded.event:
        case e.ApprovalRequested() as requested:
            return _requested(recorded, requested)
        case e.ApprovalDecided() as decided if record is not None:
            calls = tuple(_decided(call, decided.decisions.get(call.call_id)) for call in record.calls)
            return _settled(
                record,
                recorded,
                state=ApprovalState.DECIDED,
                calls=calls,
                settled_by=decided.by,
                reason=storable(decided.reason) or None,
                opened_run_id=decided.opens,
            )
        case e.ApprovalExpired() if record is not None:
            return _settled(record, recorded, state=ApprovalState.EXPIRED)
        case e.ApprovalWithdrawn(by=by, reason=reason) if record is not None:
            said = storable(reason) or None
            return _settled(record, recorded, state=ApprovalState.WITHDRAWN, settled_by=by, reason=said)
        case _:
            return record


def _requested(recorded: Fact, requested: e.ApprovalRequested) -> ApprovalRecord:
    return ApprovalRecord(
        id=requested.run_id,
        tenant=recorded.tenant,
        agent=storable(requested.agent),
        session_id=None if requested.session_id is None else storable(requested.session_id),
        calls=tuple(
            CallToApprove(
                call_id=storable(call.call_id),
                tool=storable(call.tool),
                arguments=storable(call.arguments),
                effect=call.effect,
            )
            for call in requested.calls
        ),
        events=recorded.sequence,
        requested_at=recorded.at,
        expires_at=expiry_of(recorded),
    )


def _settled(record: ApprovalRecord, recorded: Fact, **changes: object) -> ApprovalRecord:
    return msgspec.structs.replace(record, events=recorded.sequence, settled_at=recorded.at, **changes)


def _decided(call: CallToApprove, decision: e.CallDecision | None) -> CallToApprove:
    if decision is None:
        return call
    said = storable(decision.reason) or None
    return msgspec.structs.replace(call, approved=decision.approved, reason=said)
