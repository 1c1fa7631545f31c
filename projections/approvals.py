"""The `approvals` view: what waits for a person's decision, and what was decided."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, cast
from uuid import UUID

import asyncpg
import msgspec

from domain.approval import ApprovalState
from domain.events import ApprovalEvent
from projections.approval_record import APPROVAL_EVENTS, ApprovalRecord, CallToApprove, advance
from projections.base import Connection, Fact, of_kinds
from projections.rows import RESET_TIMEOUT_S, columns
from projections.sql import sql


class Approvals:
    name: ClassVar[str] = "approvals"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        facts = of_kinds(page, APPROVAL_EVENTS)
        if not facts:
            return
        records = await _stored(conn, {_run_of(recorded) for recorded in facts})
        for recorded in facts:
            record = advance(records.get(_run_of(recorded)), recorded)
            if record is not None:
                records[record.id] = record
        await conn.execute(sql("upsert_approvals"), *columns(map(_row_of, records.values())))

    async def reset(self, conn: Connection) -> None:
        await conn.execute(sql("delete_approvals"), timeout=RESET_TIMEOUT_S)


_calls = msgspec.json.Decoder(tuple[CallToApprove, ...])


def record_from(row: asyncpg.Record) -> ApprovalRecord:
    """The record in a row of `approvals`."""
    return ApprovalRecord(
        id=row["run_id"],
        tenant=row["tenant_id"],
        state=ApprovalState(row["state"]),
        calls=_calls.decode(row["calls"]),
        **{name: row[name] for name in _AS_THEY_ARE},
    )


_MAPPED = {"id", "tenant", "state", "calls"}
_AS_THEY_ARE = [name for name in ApprovalRecord.__struct_fields__ if name not in _MAPPED]


def _run_of(recorded: Fact) -> UUID:
    return cast(ApprovalEvent, recorded.event).run_id


async def _stored(conn: Connection, run_ids: Iterable[UUID]) -> dict[UUID, ApprovalRecord]:
    rows = await conn.fetch(sql("touched_approvals"), list(run_ids))
    return {row["run_id"]: record_from(row) for row in rows}


def _row_of(record: ApprovalRecord) -> tuple[Any, ...]:
    """The parameters of `upsert_approvals`, in its order."""
    return (
        record.id,
        record.tenant,
        record.agent,
        record.session_id,
        record.state.value,
        msgspec.json.encode(record.calls).decode(),
        record.events,
        record.requested_at,
        record.expires_at,
        record.settled_at,
        record.settled_by,
        record.reason,
        record.opened_run_id,
    )
