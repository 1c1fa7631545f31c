"""The `schedules` view: which there are, and when each is due."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar
from uuid import UUID

import asyncpg
import msgspec

from domain.queueing import ScheduleDefinition
from projections.base import Connection, Fact, of_kinds
from projections.rows import RESET_TIMEOUT_S, columns
from projections.schedule_record import SCHEDULE_EVENTS, ScheduleRecord, advance
from projections.sql import sql


class Schedules:
    name: ClassVar[str] = "schedules"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        facts = of_kinds(page, SCHEDULE_EVENTS)
        if not facts:
            return
        records: dict[UUID, ScheduleRecord | None] = {
            **await _stored(conn, {recorded.stream_id for recorded in facts})
        }
        for recorded in facts:
            records[recorded.stream_id] = advance(records.get(recorded.stream_id), recorded)
        removed = [schedule_id for schedule_id, record in records.items() if record is None]
        if removed:
            await conn.execute(sql("remove_schedules"), removed)
        kept = [_row_of(schedule_id, record) for schedule_id, record in records.items() if record]
        if kept:
            await conn.execute(sql("upsert_schedules"), *columns(kept))

    async def reset(self, conn: Connection) -> None:
        await conn.execute(sql("delete_schedules"), timeout=RESET_TIMEOUT_S)


_definitions = msgspec.json.Decoder(ScheduleDefinition)


def record_from(row: asyncpg.Record) -> ScheduleRecord:
    """The record in a row of `schedules`."""
    return ScheduleRecord(
        tenant=row["tenant_id"],
        definition=_definitions.decode(row["definition"]),
        **{name: row[name] for name in _AS_THEY_ARE},
    )


_AS_THEY_ARE = [name for name in ScheduleRecord.__struct_fields__ if name not in ("tenant", "definition")]


async def _stored(conn: Connection, ids: Iterable[UUID]) -> dict[UUID, ScheduleRecord]:
    rows = await conn.fetch(sql("touched_schedules"), list(ids))
    return {row["schedule_id"]: record_from(row) for row in rows}


def _row_of(schedule_id: UUID, record: ScheduleRecord) -> tuple[Any, ...]:
    """The parameters of `upsert_schedules`, in its order."""
    return (
        schedule_id,
        record.tenant,
        record.definition.name,
        msgspec.json.encode(record.definition).decode(),
        record.paused,
        record.next_due,
        record.last_due,
        record.last_run_id,
        record.created_at,
        record.updated_at,
    )
