"""Lists of jobs, with who works on those that are open."""

from datetime import datetime
from uuid import UUID

import asyncpg
import msgspec

from domain.ids import RunId
from domain.run import RunStatus
from projections.job_record import JobRecord
from projections.jobs import record_from
from projections.read.snapshot import snapshot
from projections.read.window import Window
from projections.sql import sql
from projections.values import storable


class JobLease(msgspec.Struct, frozen=True, kw_only=True):
    """Who has an open job, or had it last. A claim: it is in no event."""

    host: str
    attempts: int
    until: datetime
    """By the database's clock. Once that is over, another worker may take the job."""


class Job(JobRecord, frozen=True, kw_only=True):
    """The job JSON."""

    lease: JobLease | None = None


class QueueDepth(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in a lane for a worker."""

    waiting: int
    oldest_s: float
    """Age of the oldest, by the database's clock; 0 if nothing waits."""


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs of a tenant; None asks for any."""

    status: RunStatus | None = None
    lane: str | None = None
    agent: str | None = None
    batch_id: UUID | None = None
    schedule: str | None = None


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list, newest first."""

    jobs: list[Job]
    skip: int
    take: int
    more: bool
    """Whether the list goes on after this part."""


async def list_jobs(
    pool: asyncpg.Pool, tenant: str, wanted: JobFilter | None = None, *, skip: int = 0, take: int = 50
) -> JobPage:
    """One tenant's jobs, newest first. Raises Unavailable."""
    window = Window.clamped(skip, take)
    wanted = wanted or JobFilter()
    async with snapshot(pool) as conn:
        rows = await conn.fetch(
            sql("list_jobs"),
            storable(tenant),
            None if wanted.status is None else wanted.status.value,
            _text(wanted.lane),
            _text(wanted.agent),
            wanted.batch_id,
            _text(wanted.schedule),
            window.skip,
            window.take + 1,
        )
    return JobPage(
        jobs=[_job(row) for row in rows[: window.take]],
        skip=window.skip,
        take=window.take,
        more=len(rows) > window.take,
    )


async def jobs_of_batch(pool: asyncpg.Pool, batch_id: UUID) -> dict[RunId, JobRecord]:
    """What the view has of a batch's items, by run. Raises Unavailable."""
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("jobs_of_batch"), batch_id)
    return {row["run_id"]: record_from(row) for row in rows}


async def lease_of(pool: asyncpg.Pool, run_id: RunId) -> JobLease | None:
    """Who has this open job. Raises Unavailable."""
    async with snapshot(pool) as conn:
        row = await conn.fetchrow(sql("lease_of_job"), run_id)
    return None if row is None else _lease(row)


async def queue_depths(pool: asyncpg.Pool) -> dict[str, QueueDepth]:
    """By lane; one that has nothing open may be missing. Raises Unavailable."""
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("queue_depths"))
    return {row["lane"]: QueueDepth(waiting=row["waiting"], oldest_s=row["oldest_s"]) for row in rows}


def _job(row: asyncpg.Record) -> Job:
    return Job(**msgspec.structs.asdict(record_from(row)), lease=_lease(row))


def _lease(row: asyncpg.Record) -> JobLease | None:
    if row["owner"] is None:
        return None
    return JobLease(host=row["owner"], attempts=row["attempts"], until=row["leased_until"])


def _text(value: str | None) -> str | None:
    return None if value is None else storable(value)
