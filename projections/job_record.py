"""A job as its readers see it: what is recorded of a queued run, from its submission to its end."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, get_args

import msgspec

from domain import events as e
from domain.ids import RunId
from domain.queueing import Source
from domain.run import RunStatus, status_after
from projections.base import Fact, Kinds, of_kinds
from projections.values import storable

ATTEMPTS_EXHAUSTED = "tracon.job.attempts-exhausted"

JOB_EVENTS: Kinds = frozenset({e.RunCreated, e.RunStarted, *get_args(e.RunEnd), e.JobAttemptsExhausted})
"""What moves a job. Everything else is its run's own business."""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A job has its run's id and status; only one that is given up has failed before its run has."""

    id: RunId
    tenant: str
    agent: str
    lane: str
    priority: int
    max_attempts: int
    source: Source | None = None
    """The batch, schedule or trigger that it belongs to."""
    status: RunStatus = RunStatus.QUEUED
    error: str | None = None
    """Of a failed job: its run's `error_type`, or `tracon.job.attempts-exhausted`."""
    queued_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


def job_of(stream: Iterable[Fact]) -> JobRecord | None:
    """The record of a run's whole stream; None if the run is no job."""
    record = None
    for recorded in of_kinds(stream, JOB_EVENTS):
        record = advance(record, recorded)
    return record


def advance(record: JobRecord | None, recorded: Fact) -> JobRecord | None:
    """Fold one of `JOB_EVENTS` in. A run that is not queued has no record. The first end is the end."""
    if isinstance(recorded.event, e.RunCreated):
        return _opened(recorded, recorded.event)
    if record is None or record.ended_at is not None:
        return record
    return msgspec.structs.replace(record, **_changes(recorded))


def _opened(recorded: Fact, created: e.RunCreated) -> JobRecord | None:
    queue = created.queue
    if queue is None:
        return None
    return JobRecord(
        id=RunId(recorded.stream_id),
        tenant=recorded.tenant,
        agent=storable(created.agent),
        lane=queue.lane,
        priority=queue.priority,
        max_attempts=queue.max_attempts,
        source=queue.source,
        queued_at=recorded.at,
    )


def _changes(recorded: Fact) -> dict[str, Any]:
    match recorded.event:
        case e.RunStarted():
            return {"status": RunStatus.RUNNING, "started_at": recorded.at}
        case e.JobAttemptsExhausted():
            return {"status": RunStatus.FAILED, "ended_at": recorded.at, "error": ATTEMPTS_EXHAUSTED}
        case event if isinstance(event, e.RunEnd):
            error = storable(event.error_type) if isinstance(event, e.RunFailed) else None
            return {"status": status_after(event), "ended_at": recorded.at, "error": error}
        case _:
            return {}
