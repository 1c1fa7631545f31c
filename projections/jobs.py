"""The `jobs` view, and the work list that workers lease from.

Workers' claims are in the work list too, and no event tells of them. So this adds what is missing and removes
what has ended, and leaves every row alone that is there: folding again changes no claim, and waits for none.
"""

from collections.abc import Collection, Sequence
from typing import Any, ClassVar
from uuid import UUID

import asyncpg
import msgspec

from domain.events import RunCreated
from domain.queueing import BatchItem, ScheduleFiring, Source
from domain.run import RunStatus
from projections.base import Connection, Fact, of_kinds
from projections.job_record import JOB_EVENTS, JobRecord, advance
from projections.rows import RESET_TIMEOUT_S, columns
from projections.sql import sql

CHANNEL = "tracon_jobs"
"""Notified when there is more work. A hint: workers look by themselves now and then."""


class Jobs:
    name: ClassVar[str] = "jobs"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        facts = of_kinds(page, JOB_EVENTS)
        if not facts:
            return
        positions: dict[UUID, int] = {}
        created = {one.stream_id for one in facts if isinstance(one.event, RunCreated)}
        records = await _stored(conn, {one.stream_id for one in facts} - created)
        for recorded in facts:
            known = records.get(recorded.stream_id)
            record = advance(known, recorded)
            if record is not None:
                records[recorded.stream_id] = record
                if known is None:
                    positions[recorded.stream_id] = recorded.position
        if records:
            await _store(conn, records, positions)

    async def reset(self, conn: Connection) -> None:
        """The work list stays: it holds claims."""
        await conn.execute(sql("delete_jobs"), timeout=RESET_TIMEOUT_S)


_sources = msgspec.json.Decoder(Source)


def record_from(row: asyncpg.Record) -> JobRecord:
    """The record in a row of `jobs`."""
    return JobRecord(
        id=row["run_id"],
        tenant=row["tenant_id"],
        status=RunStatus(row["status"]),
        source=None if row["source"] is None else _sources.decode(row["source"]),
        **{name: row[name] for name in _AS_THEY_ARE},
    )


_MAPPED = {"id", "tenant", "status", "source"}
_AS_THEY_ARE = [name for name in JobRecord.__struct_fields__ if name not in _MAPPED]


async def _stored(conn: Connection, run_ids: Collection[UUID]) -> dict[UUID, JobRecord]:
    if not run_ids:
        return {}
    rows = await conn.fetch(sql("touched_jobs"), list(run_ids))
    return {row["run_id"]: record_from(row) for row in rows}


async def _store(conn: Connection, records: dict[UUID, JobRecord], positions: dict[UUID, int]) -> None:
    await conn.execute(sql("upsert_jobs"), *columns(map(_row_of, records.values())))
    if ended := [run_id for run_id, record in records.items() if record.ended_at is not None]:
        await conn.execute(sql("delete_from_job_queue"), ended)
    waiting = [
        _in_line(records[run_id], position)
        for run_id, position in positions.items()
        if records[run_id].ended_at is None
    ]
    if waiting:
        await conn.execute(sql("add_to_job_queue"), *columns(waiting), CHANNEL)


def _in_line(record: JobRecord, position: int) -> tuple[Any, ...]:
    """The first parameters of `add_to_job_queue`, in its order."""
    return (
        record.id,
        record.lane,
        record.priority,
        position,
        record.agent,
        record.max_attempts,
        record.queued_at,
    )


def _row_of(record: JobRecord) -> tuple[Any, ...]:
    """The parameters of `upsert_jobs`, in its order."""
    source = record.source
    return (
        record.id,
        record.tenant,
        record.agent,
        record.lane,
        record.priority,
        record.max_attempts,
        None if source is None else msgspec.json.encode(source).decode(),
        source.batch_id if isinstance(source, BatchItem) else None,
        source.number if isinstance(source, BatchItem) else None,
        source.schedule if isinstance(source, ScheduleFiring) else None,
        record.status.value,
        record.error,
        record.queued_at,
        record.started_at,
        record.ended_at,
    )
