"""An idempotency key as operators see it, folded from its events."""

from datetime import datetime
from enum import StrEnum
from typing import get_args
from uuid import UUID

import msgspec

from domain import events as e
from domain.ids import RunId
from projections.base import BrokenStream, Fact, Kinds
from projections.values import storable

KEY_EVENTS: Kinds = frozenset(get_args(e.IdempotencyEvent))


class KeyState(StrEnum):
    IN_PROGRESS = "in_progress"
    """Its run has not ended, or nobody knows yet what came of it."""
    COMPLETED = "completed"
    """Its answer is kept, and given to whoever repeats the request."""
    RELEASED = "released"
    """It may be used as if it were new."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a key stands for: the last submission that had it."""

    stream_id: UUID
    tenant: str
    key: str
    state: KeyState = KeyState.IN_PROGRESS
    method: str
    path: str
    fingerprint: str
    form: str
    run_id: RunId
    """The run that the submission opened."""
    settled_by: RunId | None = None
    """The run whose end settled it: another one, where runs were continued."""
    status: int | None = None
    """Of the answer that is kept."""
    reason: str | None = None
    """Why it was released."""
    by_operator: bool = False
    events: int
    reserved_at: datetime
    settled_at: datetime | None = None


def advance(record: KeyRecord | None, recorded: Fact) -> KeyRecord | None:
    """Fold the next event of the stream in. An event that is not of a key changes nothing.

    Raises BrokenStream where the sequence has a gap or a repeat.
    """
    if type(recorded.event) not in KEY_EVENTS:
        return record
    known = record.events if record else 0
    if recorded.sequence != known + 1:
        raise BrokenStream(f"key {recorded.stream_id} goes on at {recorded.sequence} after {known}")
    match recorded.event:
        case e.IdempotencyKeyReserved() as reserved:
            return _reserved(recorded, reserved)
        case e.IdempotencyKeyCompleted() as completed:
            return _settled(
                record,
                recorded,
                state=KeyState.COMPLETED,
                settled_by=completed.run_id,
                status=completed.status,
                by_operator=completed.by_operator,
            )
        case e.IdempotencyKeyReleased() as released:
            return _settled(
                record,
                recorded,
                state=KeyState.RELEASED,
                settled_by=released.run_id,
                reason=storable(released.reason),
            )
        case _:
            return record


def _reserved(recorded: Fact, reserved: e.IdempotencyKeyReserved) -> KeyRecord:
    return KeyRecord(
        stream_id=recorded.stream_id,
        tenant=recorded.tenant,
        key=storable(reserved.key),
        method=storable(reserved.method),
        path=storable(reserved.path),
        fingerprint=storable(reserved.fingerprint),
        form=storable(reserved.form),
        run_id=reserved.run_id,
        events=recorded.sequence,
        reserved_at=recorded.at,
    )


def _settled(record: KeyRecord | None, recorded: Fact, **changes: object) -> KeyRecord:
    if record is None:
        raise BrokenStream(f"key {recorded.stream_id} begins with {type(recorded.event).__name__}")
    return msgspec.structs.replace(record, events=recorded.sequence, settled_at=recorded.at, **changes)
