"""The `tools` view: one row for each tool call of every run."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar
from uuid import UUID

import asyncpg
import msgspec

from domain import events as e
from projections.base import DEEDS_OF_RUNS, Connection, Fact, of_kinds
from projections.rows import RESET_TIMEOUT_S, columns
from projections.sql import sql
from projections.tool_calls import LastStep, ToolCallRecord, ToolCallState, advance


class Tools:
    """A requested call has a row too, which its start and its result fill."""

    name: ClassVar[str] = "tools"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        deeds = of_kinds(page, DEEDS_OF_RUNS)
        if not deeds:
            return
        steps = await _last_steps(conn, {recorded.stream_id for recorded in deeds})
        changed: dict[tuple[UUID, int], ToolCallRecord] = {}
        for recorded in deeds:
            before = steps.get(recorded.stream_id, ())
            after = advance(before, recorded)
            if after is not before:
                steps[recorded.stream_id] = after
                changed.update(((call.run_id, call.ordinal), call) for call in after)
        if changed:
            await conn.execute(sql("upsert_tool_calls"), *columns(map(_row_of, changed.values())))

    async def reset(self, conn: Connection) -> None:
        await conn.execute(sql("delete_tool_calls"), timeout=RESET_TIMEOUT_S)


def record_from(row: asyncpg.Record) -> ToolCallRecord:
    """The record in a row of `tool_calls`."""
    return ToolCallRecord(
        tenant=row["tenant_id"],
        state=ToolCallState(row["state"]),
        effect=None if row["effect"] is None else e.ToolEffect(row["effect"]),
        failure=None if row["failure"] is None else e.ToolFailure(row["failure"]),
        **{name: row[name] for name in _AS_THEY_ARE},
    )


_MAPPED = {"tenant", "state", "effect", "failure"}
_AS_THEY_ARE = [name for name in ToolCallRecord.__struct_fields__ if name not in _MAPPED]


async def _last_steps(conn: Connection, run_ids: Iterable[UUID]) -> dict[UUID, LastStep]:
    steps: dict[UUID, LastStep] = {}
    for row in await conn.fetch(sql("last_step_tool_calls"), list(run_ids)):
        call = record_from(row)
        steps[call.run_id] = (*steps.get(call.run_id, ()), call)
    return steps


def _row_of(call: ToolCallRecord) -> tuple[Any, ...]:
    """The parameters of `upsert_tool_calls`: the fields of the record, in their order."""
    return msgspec.structs.astuple(call)
