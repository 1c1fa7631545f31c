"""A run as its readers see it: the JSON of one run, folded from its events."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, assert_never

import msgspec

from domain import events as e
from domain.events.side import SideCallReplied
from domain.ids import RunId
from domain.messages import Usage
from domain.run import RunStatus, status_after
from projections.base import RUN_EVENTS, BrokenStream, Fact
from projections.values import added, plain, storable


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The run JSON. `provider` and `model_id` are of the model that answered last (CHAIN-12)."""

    id: RunId
    tenant: str
    kind: e.RunKind
    agent: str
    status: RunStatus = RunStatus.QUEUED
    provider: str | None = None
    model_id: str | None = None
    session_id: str | None = None
    root_run_id: RunId
    """The root of its tree: its own id where it has no parent."""
    parent_run_id: RunId | None = None
    depth: int = 0
    continued_from_run_id: RunId | None = None
    continued_by_run_id: RunId | None = None
    """The run that goes on from this one, which was interrupted or waited for a person."""
    continuation_blocked: e.ContinuationBlock | None = None
    """Why no run does. The event has it in words, and what can be done."""
    wait_over: e.WaitOver | None = None
    """Of a run that waits: why nobody will answer it any more."""
    replay_of_run_id: RunId | None = None
    error: str | None = None
    error_type: str | None = None
    error_class: str | None = None
    usage: Usage = Usage()
    cost: str | None = "0"
    """An exact decimal; null where the price of a call is unknown or calls were priced in two currencies."""
    currency: str | None = None
    """The currency of `cost`, from the first call that had a price."""
    reported_cost: str = "0"
    """What its tools and nodes said they have spent beyond tokens, in the currency that prices are set in."""
    events: int
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


def record_of(stream: Iterable[Fact]) -> RunRecord | None:
    """The record of a whole stream; None if it is not a run's."""
    record = None
    for recorded in stream:
        record = advance(record, recorded)
    return record


def advance(record: RunRecord | None, recorded: Fact) -> RunRecord | None:
    """Fold the next event of the stream in. An event that is not of a run changes nothing.

    Raises BrokenStream where the sequence has a gap or a repeat.
    """
    if type(recorded.event) not in RUN_EVENTS:
        return record
    known = record.events if record else 0
    if recorded.sequence != known + 1:
        raise BrokenStream(f"run {recorded.stream_id} goes on at {recorded.sequence} after {known}")
    if record is None:
        return _opened(recorded)
    return msgspec.structs.replace(record, events=recorded.sequence, **_changes(record, recorded))


def _opened(recorded: Fact) -> RunRecord:
    created = recorded.event
    if not isinstance(created, e.RunCreated):
        raise BrokenStream(f"run {recorded.stream_id} begins with {type(created).__name__}")
    run_id = RunId(recorded.stream_id)
    return RunRecord(
        id=run_id,
        tenant=recorded.tenant,
        kind=created.kind,
        agent=storable(created.agent),
        session_id=None if created.session_id is None else storable(created.session_id),
        root_run_id=created.root_run_id or run_id,
        parent_run_id=created.parent_run_id,
        depth=created.depth,
        continued_from_run_id=created.continued_from_run_id,
        replay_of_run_id=None if created.replay is None else created.replay.run_id,
        events=recorded.sequence,
        created_at=recorded.at,
    )


def _changes(record: RunRecord, recorded: Fact) -> dict[str, Any]:
    match recorded.event:
        case e.RunStarted(definition=definition):
            return {
                "status": RunStatus.RUNNING,
                "provider": storable(definition.provider) if definition else None,
                "model_id": storable(definition.model) if definition else None,
                "started_at": recorded.at,
            }
        case e.ModelReplied() as replied:
            return _answered(record, replied)
        case SideCallReplied() as replied:
            return _charged(record, replied)  # it is not the agent's model that answered (CHAIN-13)
        case e.UsageReported(amount=amount, counted=True) if amount is not None:
            return {"reported_cost": plain(added(Decimal(record.reported_cost), amount))}
        case e.RunContinued() | e.RunContinuationBlocked() | e.RunWaitEnded() as later:
            return _afterwards(later)
        case event if isinstance(event, e.RunEnd):
            return {"ended_at": recorded.at, "status": status_after(event), **_error(event)}
        case _:
            return {}  # a view may ignore any event


def _afterwards(event: e.RunContinued | e.RunContinuationBlocked | e.RunWaitEnded) -> dict[str, Any]:
    match event:
        case e.RunContinued(by=by):
            return {"continued_by_run_id": by, "continuation_blocked": None}
        case e.RunContinuationBlocked(cause=cause):
            return {"continuation_blocked": cause}
        case e.RunWaitEnded(cause=cause):
            return {"wait_over": cause}
        case _:
            assert_never(event)


def _error(end: e.RunEnd) -> dict[str, Any]:
    if not isinstance(end, e.RunFailed):
        return {}
    return {
        "error": storable(end.error),
        "error_type": storable(end.error_type),
        "error_class": end.error_class.value,
    }


def _answered(record: RunRecord, replied: e.ModelReplied) -> dict[str, Any]:
    answered_by = {"provider": storable(replied.provider), "model_id": storable(replied.model)}
    return {**answered_by, **_charged(record, replied)}


def _charged(record: RunRecord, replied: e.ModelReplied | SideCallReplied) -> dict[str, Any]:
    priced_in = None if replied.cost is None else storable(replied.currency)
    return {
        "usage": record.usage + replied.usage,
        "cost": _sum(record, replied.cost, priced_in),
        "currency": record.currency or priced_in,
    }


def _sum(record: RunRecord, cost: Decimal | None, currency: str | None) -> str | None:
    if record.cost is None or cost is None or record.currency not in (None, currency):
        return None
    return plain(added(Decimal(record.cost), cost))
