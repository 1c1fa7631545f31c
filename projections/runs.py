"""The `runs` view: one row for each run, the same as a fold of the run's stream."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

import asyncpg
import msgspec

from domain.events import ContinuationBlock as Block
from domain.events import RunKind, WaitOver
from domain.messages import Usage
from domain.run import RunStatus
from projections.base import RUN_EVENTS, Connection, Fact, of_kinds
from projections.rows import RESET_TIMEOUT_S, columns
from projections.run_record import RunRecord, advance
from projections.sql import sql
from projections.values import plain


class Runs:
    name: ClassVar[str] = "runs"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        of_runs = of_kinds(page, RUN_EVENTS)
        if not of_runs:
            return
        records = await _stored(conn, {recorded.stream_id for recorded in of_runs})
        for recorded in of_runs:
            record = advance(records.get(recorded.stream_id), recorded)
            if record is not None:
                records[recorded.stream_id] = record
        await conn.execute(sql("upsert_runs"), *columns(map(_row_of, records.values())))

    async def reset(self, conn: Connection) -> None:
        await conn.execute(sql("delete_runs"), timeout=RESET_TIMEOUT_S)


def record_from(row: asyncpg.Record) -> RunRecord:
    """The record in a row of `runs`."""
    return RunRecord(
        id=row["run_id"],
        tenant=row["tenant_id"],
        kind=RunKind(row["kind"]),
        status=RunStatus(row["status"]),
        continuation_blocked=None if (cause := row["continuation_blocked"]) is None else Block(cause),
        wait_over=None if (over := row["wait_over"]) is None else WaitOver(over),
        usage=Usage(**{name: row[name] for name in Usage.__struct_fields__}),
        cost=None if row["cost"] is None else plain(row["cost"]),
        reported_cost=plain(row["reported_cost"]),
        **{name: row[name] for name in _AS_THEY_ARE},
    )


_MAPPED = {
    "id",
    "tenant",
    "kind",
    "status",
    "continuation_blocked",
    "wait_over",
    "usage",
    "cost",
    "reported_cost",
}
_AS_THEY_ARE = [name for name in RunRecord.__struct_fields__ if name not in _MAPPED]


async def _stored(conn: Connection, run_ids: Iterable[UUID]) -> dict[UUID, RunRecord]:
    rows = await conn.fetch(sql("touched_runs"), list(run_ids))
    return {row["run_id"]: record_from(row) for row in rows}


def _row_of(record: RunRecord) -> tuple[Any, ...]:
    """The parameters of `upsert_runs`, in its order."""
    return (
        record.id,
        record.tenant,
        record.kind.value,
        record.agent,
        record.status.value,
        record.provider,
        record.model_id,
        record.session_id,
        record.root_run_id,
        record.parent_run_id,
        record.depth,
        record.continued_from_run_id,
        record.continued_by_run_id,
        None if record.continuation_blocked is None else record.continuation_blocked.value,
        record.replay_of_run_id,
        record.error,
        record.error_type,
        record.error_class,
        *msgspec.structs.astuple(record.usage),
        None if record.cost is None else Decimal(record.cost),
        record.currency,
        record.events,
        record.created_at,
        record.started_at,
        record.ended_at,
        None if record.wait_over is None else record.wait_over.value,
        Decimal(record.reported_cost),
    )
