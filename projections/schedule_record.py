"""A schedule as its readers see it, folded from its events."""

from collections.abc import Iterable
from datetime import datetime
from typing import get_args

import msgspec

from domain import events as e
from domain.ids import RunId
from domain.queueing import ScheduleDefinition
from projections.base import Fact, Kinds

SCHEDULE_EVENTS: Kinds = frozenset(get_args(e.ScheduleEvent))


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule JSON. `next_due` passes by while it is paused."""

    tenant: str
    definition: ScheduleDefinition
    paused: bool = False
    next_due: datetime | None = None
    last_due: datetime | None = None
    last_run_id: RunId | None = None
    created_at: datetime
    updated_at: datetime
    """When it was last defined, paused or resumed; its firings are not changes."""


def record_of(stream: Iterable[Fact]) -> ScheduleRecord | None:
    """The record of a whole stream; None if there is no such schedule, or none any more."""
    record = None
    for recorded in stream:
        record = advance(record, recorded)
    return record


def advance(record: ScheduleRecord | None, recorded: Fact) -> ScheduleRecord | None:
    """Fold the next event of the stream in."""
    match recorded.event:
        case e.ScheduleDefined() as defined:
            return _defined(record, recorded, defined)
        case e.ScheduleRemoved():
            return None
    return None if record is None else _changed(record, recorded)


def _defined(record: ScheduleRecord | None, recorded: Fact, defined: e.ScheduleDefined) -> ScheduleRecord:
    if record is None:
        return ScheduleRecord(
            tenant=recorded.tenant,
            definition=defined.definition,
            next_due=defined.next_due,
            created_at=recorded.at,
            updated_at=recorded.at,
        )
    return msgspec.structs.replace(
        record, definition=defined.definition, next_due=defined.next_due, updated_at=recorded.at
    )


def _changed(record: ScheduleRecord, recorded: Fact) -> ScheduleRecord:
    change = msgspec.structs.replace
    match recorded.event:
        case e.SchedulePaused():
            return change(record, paused=True, updated_at=recorded.at)
        case e.ScheduleResumed(next_due=next_due):
            return change(record, paused=False, next_due=next_due, updated_at=recorded.at)
        case e.ScheduleFired(due=due, run_id=run_id, next_due=next_due):
            return change(record, next_due=next_due, last_due=due, last_run_id=run_id)
        case e.ScheduleSkipped(next_due=next_due):
            return change(record, next_due=next_due)
        case e.ScheduleTriggered(run_id=run_id):
            return change(record, last_run_id=run_id)
        case _:
            return record
