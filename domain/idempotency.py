"""An idempotency key: the submission that has it, and what came of that (IDEM)."""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import ClassVar, assert_never

import msgspec

from domain import events as e
from domain.continuation import uncertain_calls, was_orphaned
from domain.errors import Conflict, Rejected
from domain.ids import RunId, Version
from domain.run import Run, RunStatus


class KeyReused(Rejected):
    """The key belongs to another request. Give every operation a key of its own."""

    code = "idempotency_key_reused"

    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was used with another method, path or body.")


class KeyInProgress(Conflict):
    """The key's first request is not answered yet. Come again: its answer will be there."""

    code = "idempotency_key_in_progress"
    retry_after_s: ClassVar[float] = 1.0

    def __init__(self, run_id: RunId) -> None:
        super().__init__("The first request with this Idempotency-Key is still in progress.")
        self.run_id = run_id


class KeyNotHeld(Conflict):
    """The submission does not have the key any more, or has its answer already. Read the key again."""

    code = "idempotency_key_not_held"

    def __init__(self) -> None:
        super().__init__("No request in progress has this Idempotency-Key.")


class KeyedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that tells one request with a key from another (IDEM-3)."""

    key: str
    method: str
    path: str
    fingerprint: str

    @classmethod
    def of(cls, key: str, method: str, path: str, body: bytes) -> "KeyedRequest":
        return cls(key=key, method=method, path=path, fingerprint=fingerprint_of(method, path, body))


def fingerprint_of(method: str, path: str, body: bytes) -> str:
    """Equal for the same method, path and bytes alone. Lengths keep ("a", "bc") apart from ("ab", "c")."""
    digest = hashlib.sha256(f"{len(method)}:{method}{len(path)}:{path}".encode())
    digest.update(body)
    return digest.hexdigest()


class KeptFor(msgspec.Struct, frozen=True, kw_only=True):
    """How long an answer is given again, and what time it is: the database's, like the answer's own."""

    age_s: float
    now: datetime

    def is_over(self, since: datetime) -> bool:
        return self.now - since >= timedelta(seconds=self.age_s)


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key as its events have it. Free, unless a submission has it."""

    version: Version = Version(0)
    reserved: e.IdempotencyKeyReserved | None = None
    completed: e.IdempotencyKeyCompleted | None = None
    completed_at: datetime | None = None

    @property
    def in_progress(self) -> bool:
        return self.reserved is not None and self.completed is None


class Reserve(msgspec.Struct, frozen=True, kw_only=True):
    """Give the key to this request, whose run will be `run_id`."""

    request: KeyedRequest
    run_id: RunId
    form: str
    kept: KeptFor | None = None


class Complete(msgspec.Struct, frozen=True, kw_only=True):
    """The submission whose run is `reserved_by` has this answer."""

    reserved_by: RunId
    run_id: RunId
    status: int
    content_type: str
    body: str
    headers: dict[str, str] = {}
    by_operator: bool = False


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing that could be given again will come of the submission whose run is `reserved_by`."""

    reserved_by: RunId
    run_id: RunId
    reason: str


KeyCommand = Reserve | Complete | Release


def answer_to(
    key: Key, request: KeyedRequest, kept: KeptFor | None = None
) -> e.IdempotencyKeyCompleted | None:
    """What to answer at once; None where the request may have the key. Raise KeyReused or KeyInProgress."""
    if key.reserved is None or _aged(key, kept):
        return None
    if key.reserved.fingerprint != request.fingerprint:
        raise KeyReused
    if key.completed is None:
        raise KeyInProgress(key.reserved.run_id)
    return key.completed


def decide(key: Key, command: KeyCommand) -> list[e.IdempotencyEvent]:
    """Return the facts that follow, or raise. An empty list: the request has its answer already."""
    match command:
        case Reserve():
            return _reserve(key, command)
        case Complete():
            return _complete(key, command)
        case Release():
            _require_held(key, command.reserved_by)
            return [e.IdempotencyKeyReleased(run_id=command.run_id, reason=command.reason)]
        case _:
            assert_never(command)


def evolve(key: Key, recorded: e.Recorded[e.IdempotencyEvent]) -> Key:
    """Fold one fact in."""
    version = Version(key.version + 1)
    match recorded.event:
        case e.IdempotencyKeyReserved() as reserved:
            return Key(version=version, reserved=reserved)
        case e.IdempotencyKeyCompleted() as completed:
            return Key(version=version, reserved=key.reserved, completed=completed, completed_at=recorded.at)
        case e.IdempotencyKeyReleased():
            return Key(version=version)
        case _:
            assert_never(recorded.event)


def fold(recorded: Iterable[e.Recorded[e.IdempotencyEvent]]) -> Key:
    key = Key()
    for one in recorded:
        key = evolve(key, one)
    return key


class ChainState(Enum):
    """What the runs that a key stands for have come to, the first and those that continue it (IDEM-5)."""

    OPEN = auto()
    """One of them is at work, or another will go on in its place."""
    ANSWERED = auto()
    NOTHING = auto()
    """The last one ended without an answer, and no other follows."""
    DUE = auto()
    """The doubt that held the last one up is resolved; nobody has said yet whether another follows."""
    UNCERTAIN = auto()
    """Nobody knows whether a call that must not be made twice had its effect: somebody has to find out."""
    WAITING = auto()
    """The last one waits for a person, whose word opens another run: the answer is that one's."""


def state_of(chain: Sequence[Run], *, continues: bool, goes_past_people: bool = False) -> ChainState:
    """`continues`: whether interrupted runs are continued here, or at least judged.

    `goes_past_people`: that a run waits for a person is no answer; what comes after it is.
    """
    last = chain[-1]
    if last.status.awaits:
        return _of_waiting(last) if goes_past_people else ChainState.ANSWERED
    if not last.status.ended or last.continued_by is not None:
        return ChainState.OPEN
    if last.status not in (RunStatus.FAILED, RunStatus.CANCELLED):
        return ChainState.ANSWERED
    if not was_orphaned(last):
        return ChainState.NOTHING
    if continues and last.blocked is None:
        return ChainState.OPEN
    if any(map(uncertain_calls, chain)):
        return ChainState.UNCERTAIN
    held_up = last.blocked is not None and last.blocked.cause is e.ContinuationBlock.OUTCOME_UNKNOWN
    return ChainState.DUE if held_up else ChainState.NOTHING


def _of_waiting(run: Run) -> ChainState:
    if run.continued_by is not None:
        return ChainState.OPEN
    return ChainState.WAITING if run.wait_over is None else ChainState.NOTHING


def _reserve(key: Key, command: Reserve) -> list[e.IdempotencyEvent]:
    request = command.request
    if answer_to(key, request, command.kept) is not None:
        return []
    return [
        e.IdempotencyKeyReserved(
            key=request.key,
            method=request.method,
            path=request.path,
            fingerprint=request.fingerprint,
            run_id=command.run_id,
            form=command.form,
        )
    ]


def _complete(key: Key, command: Complete) -> list[e.IdempotencyEvent]:
    _require_held(key, command.reserved_by)
    return [
        e.IdempotencyKeyCompleted(
            run_id=command.run_id,
            status=command.status,
            content_type=command.content_type,
            body=command.body,
            headers=command.headers,
            by_operator=command.by_operator,
        )
    ]


def _require_held(key: Key, run_id: RunId) -> None:
    """Somebody may have released the key meanwhile, and another submission may have it now."""
    if key.reserved is None or key.completed is not None or key.reserved.run_id != run_id:
        raise KeyNotHeld


def _aged(key: Key, kept: KeptFor | None) -> bool:
    """Only an answer ages: a submission in progress has the key for as long as it takes."""
    return kept is not None and key.completed_at is not None and kept.is_over(key.completed_at)
