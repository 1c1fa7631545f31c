"""The `idempotency` view: one row for each key, the same as a fold of the key's stream."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar
from uuid import UUID

import asyncpg
import msgspec

from projections.base import Connection, Fact, of_kinds
from projections.idempotency_record import KEY_EVENTS, KeyRecord, KeyState, advance
from projections.rows import RESET_TIMEOUT_S, columns
from projections.sql import sql


class Idempotency:
    name: ClassVar[str] = "idempotency"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        facts = of_kinds(page, KEY_EVENTS)
        if not facts:
            return
        records = await _stored(conn, {recorded.stream_id for recorded in facts})
        for recorded in facts:
            record = advance(records.get(recorded.stream_id), recorded)
            if record is not None:
                records[recorded.stream_id] = record
        await conn.execute(sql("upsert_idempotency"), *columns(map(_row_of, records.values())))

    async def reset(self, conn: Connection) -> None:
        await conn.execute(sql("delete_idempotency"), timeout=RESET_TIMEOUT_S)


def record_from(row: asyncpg.Record) -> KeyRecord:
    """The record in a row of `idempotency`."""
    return KeyRecord(
        tenant=row["tenant_id"], state=KeyState(row["state"]), **{name: row[name] for name in _AS_THEY_ARE}
    )


_MAPPED = {"tenant", "state"}
_AS_THEY_ARE = [name for name in KeyRecord.__struct_fields__ if name not in _MAPPED]


async def _stored(conn: Connection, stream_ids: Iterable[UUID]) -> dict[UUID, KeyRecord]:
    rows = await conn.fetch(sql("touched_idempotency"), list(stream_ids))
    return {row["stream_id"]: record_from(row) for row in rows}


def _row_of(record: KeyRecord) -> tuple[Any, ...]:
    """The parameters of `upsert_idempotency`: the fields of the record, in their order."""
    return msgspec.structs.astuple(record)
