"""Idempotency keys, and the submissions that have them."""

from domain.event import Event
from domain.ids import RunId


class IdempotencyKeyReserved(Event, frozen=True, kw_only=True, tag="idempotency-key.reserved.v1"):
    """A submission has the key, from the same append on that opened its run (IDEM-4).

    `form` names what its answer looks like, so that any host can make it from the run's events.
    """

    key: str
    method: str
    path: str
    fingerprint: str
    run_id: RunId
    form: str


class IdempotencyKeyCompleted(Event, frozen=True, kw_only=True, tag="idempotency-key.completed.v1"):
    """The submission has its answer, and whoever repeats it gets this one, byte for byte.

    `run_id`: the run that the answer is of; the last one of its chain, where runs were continued (IDEM-5).
    """

    run_id: RunId
    status: int
    content_type: str
    body: str
    headers: dict[str, str] = {}
    by_operator: bool = False


class IdempotencyKeyReleased(Event, frozen=True, kw_only=True, tag="idempotency-key.released.v1"):
    """Nothing came of the submission that could be given again. The key may be used as if it were new."""

    run_id: RunId
    reason: str
