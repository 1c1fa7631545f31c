"""A schedule: which run is wanted at which times, and which of them have had it.

The next due time is a fact, not a calculation: every event that moves it carries it. A host that fires names
the due time and appends right behind what it read, so of all hosts one can (JOB-2).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol, assert_never

import msgspec

from domain import events as e
from domain.errors import Conflict, NotFound
from domain.ids import RunId, Version
from domain.queueing import MissedFirings, ScheduleDefinition


class ScheduleNotFound(NotFound):
    """No schedule of this tenant has this name."""

    code = "schedule_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule {name!r}")


class ScheduleExists(Conflict):
    """The name is taken. Replace that schedule, or choose another name."""

    code = "schedule_exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name!r} already")


class NotDue(Conflict):
    """The schedule moved on, or waits. Read it again: there may be nothing left to do."""

    code = "schedule_not_due"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What later decisions read. Without a definition there is no such schedule, or none any more."""

    version: Version = Version(0)
    definition: ScheduleDefinition | None = None
    paused: bool = False
    next_due: datetime | None = None
    last_due: datetime | None = None
    last_run_id: RunId | None = None


class DefineSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """Make it, or with `replace` make it or change it. A pause outlives a change."""

    definition: ScheduleDefinition
    next_due: datetime | None
    replace: bool = False


class PauseSchedule(msgspec.Struct, frozen=True, kw_only=True):
    pass


class ResumeSchedule(msgspec.Struct, frozen=True, kw_only=True):
    next_due: datetime | None


class TriggerSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """Run it now, whatever its times are."""

    run_id: RunId


class RemoveSchedule(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Fire(msgspec.Struct, frozen=True, kw_only=True):
    """Give this due time its run. The due times from `missed_since` on, if there are any, get no other."""

    due: datetime
    next_due: datetime | None
    missed_since: datetime | None = None


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Record that these due times get no run."""

    due: datetime
    until: datetime
    next_due: datetime | None


class FireSchedule(msgspec.Struct, frozen=True, kw_only=True):
    firing: Fire
    run_id: RunId


ScheduleCommand = (
    DefineSchedule | PauseSchedule | ResumeSchedule | TriggerSchedule | RemoveSchedule | FireSchedule | Skip
)


class Calendar(Protocol):
    """The times that a cron expression means in its time zone, daylight saving included."""

    def after(self, moment: datetime) -> datetime | None:
        """The first due time after the moment."""

    def up_to(self, moment: datetime) -> datetime | None:
        """The last due time that is not after the moment."""


def plan(schedule: Schedule, calendar: Calendar, now: datetime, grace_s: float) -> Fire | Skip | None:
    """What is to be done now, if anything. A due time that is older than `grace_s` was missed."""
    due = schedule.next_due
    if schedule.definition is None or schedule.paused or due is None or due > now:
        return None
    oldest = now - timedelta(seconds=grace_s)
    if due >= oldest:
        return Fire(due=due, next_due=calendar.after(due))
    match schedule.definition.missed:
        case MissedFirings.FIRE_ONCE:
            latest = max(due, calendar.up_to(now) or due)
            missed_since = due if latest > due else None
            return Fire(due=latest, next_due=calendar.after(latest), missed_since=missed_since)
        case MissedFirings.SKIP:
            latest = max(due, calendar.up_to(oldest) or due)
            return Skip(due=due, until=latest, next_due=calendar.after(latest))
        case policy:
            assert_never(policy)


def decide(schedule: Schedule, name: str, command: ScheduleCommand) -> list[e.ScheduleEvent]:
    """Return the facts that follow, or raise a NotFound or Conflict. An empty list means "already so"."""
    if isinstance(command, DefineSchedule):
        return _define(schedule, command)
    if schedule.definition is None:
        raise ScheduleNotFound(name)
    match command:
        case PauseSchedule():
            return [] if schedule.paused else [e.SchedulePaused()]
        case ResumeSchedule(next_due=next_due):
            return [e.ScheduleResumed(next_due=next_due)] if schedule.paused else []
        case TriggerSchedule(run_id=run_id):
            return [e.ScheduleTriggered(run_id=run_id)]
        case RemoveSchedule():
            return [e.ScheduleRemoved()]
        case FireSchedule() | Skip():
            return _settle(schedule, command)
        case _:
            assert_never(command)


def _settle(schedule: Schedule, command: FireSchedule | Skip) -> list[e.ScheduleEvent]:
    """A due time is over, one way or the other."""
    if isinstance(command, Skip):
        _require_due(schedule, command.due)
        return [e.ScheduleSkipped(due=command.due, until=command.until, next_due=command.next_due)]
    firing = command.firing
    _require_due(schedule, firing.missed_since or firing.due)
    return [
        e.ScheduleFired(
            due=firing.due,
            run_id=command.run_id,
            next_due=firing.next_due,
            missed_since=firing.missed_since,
        )
    ]


def _define(schedule: Schedule, command: DefineSchedule) -> list[e.ScheduleEvent]:
    if schedule.definition is not None and not command.replace:
        raise ScheduleExists(command.definition.name)
    return [e.ScheduleDefined(definition=command.definition, next_due=command.next_due)]


def _require_due(schedule: Schedule, due: datetime) -> None:
    if schedule.paused or schedule.next_due != due:
        raise NotDue(f"the schedule is not due at {due.isoformat()}")


def evolve(schedule: Schedule, event: e.ScheduleEvent) -> Schedule:  # noqa: C901 - one flat dispatch
    """Fold one fact in. Never raises."""
    version = Version(schedule.version + 1)
    if schedule.definition is None and not isinstance(event, e.ScheduleDefined):
        return Schedule(version=version)
    match event:
        case e.ScheduleDefined(definition=definition, next_due=next_due):
            return _with(schedule, version=version, definition=definition, next_due=next_due)
        case e.SchedulePaused():
            return _with(schedule, version=version, paused=True)
        case e.ScheduleResumed(next_due=next_due):
            return _with(schedule, version=version, paused=False, next_due=next_due)
        case e.ScheduleFired(due=due, run_id=run_id, next_due=next_due):
            return _with(schedule, version=version, next_due=next_due, last_due=due, last_run_id=run_id)
        case e.ScheduleSkipped(next_due=next_due):
            return _with(schedule, version=version, next_due=next_due)
        case e.ScheduleTriggered(run_id=run_id):
            return _with(schedule, version=version, last_run_id=run_id)
        case e.ScheduleRemoved():
            return Schedule(version=version)
        case _:
            assert_never(event)


def fold(events: Iterable[e.ScheduleEvent]) -> Schedule:
    """The state after these events, from nothing."""
    schedule = Schedule()
    for event in events:
        schedule = evolve(schedule, event)
    return schedule


_with = msgspec.structs.replace
