"""Schedules and batches: runs that are asked for by the clock, or many at a time."""

from datetime import datetime

from domain.event import Event
from domain.ids import RunId
from domain.queueing import ScheduleDefinition


class ScheduleDefined(Event, frozen=True, kw_only=True, tag="schedule.defined.v1"):
    """The schedule is this from now on, whatever it was. Without `next_due` it will never fire."""

    definition: ScheduleDefinition
    next_due: datetime | None = None


class SchedulePaused(Event, frozen=True, kw_only=True, tag="schedule.paused.v1"):
    """Due times pass by until it is resumed. They do not count as missed."""


class ScheduleResumed(Event, frozen=True, kw_only=True, tag="schedule.resumed.v1"):
    """It fires again, from `next_due` on."""

    next_due: datetime | None = None


class ScheduleFired(Event, frozen=True, kw_only=True, tag="schedule.fired.v1"):
    """A due time had its run, in the same append. No other host can fire it again: it was this stream's next.

    `missed_since`: the run also stands for the due times from then on that nobody fired.
    """

    due: datetime
    run_id: RunId
    next_due: datetime | None = None
    missed_since: datetime | None = None


class ScheduleSkipped(Event, frozen=True, kw_only=True, tag="schedule.skipped.v1"):
    """Nobody was there to fire these due times, from the first to the last, and they get no run."""

    due: datetime
    until: datetime
    next_due: datetime | None = None


class ScheduleTriggered(Event, frozen=True, kw_only=True, tag="schedule.triggered.v1"):
    """Somebody asked for a run out of turn. Due times do not change by it."""

    run_id: RunId


class ScheduleRemoved(Event, frozen=True, kw_only=True, tag="schedule.removed.v1"):
    """There is no such schedule any more. Its name is free."""


class BatchCreated(Event, frozen=True, kw_only=True, tag="batch.created.v1"):
    """Runs that were submitted together, each created in the same append. Item n is `runs[n]`."""

    agent: str
    runs: tuple[RunId, ...]
