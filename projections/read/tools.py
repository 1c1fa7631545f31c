"""Lists of tool calls, across runs."""

from datetime import datetime

import asyncpg
import msgspec

from domain.ids import RunId
from projections.read.snapshot import snapshot
from projections.read.window import Window
from projections.sql import sql
from projections.tool_calls import ToolCallRecord, ToolCallState
from projections.tools import record_from
from projections.values import storable


class ToolCallFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool calls of a tenant; None asks for any."""

    run_id: RunId | None = None
    tool: str | None = None
    state: ToolCallState | None = None
    since: datetime | None = None
    """Asked for then or later."""
    until: datetime | None = None
    """Asked for before then."""


class ToolCallPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list, newest first."""

    tool_calls: list[ToolCallRecord]
    skip: int
    take: int
    more: bool
    """Whether the list goes on after this part."""


async def list_tool_calls(
    pool: asyncpg.Pool,
    tenant: str,
    wanted: ToolCallFilter | None = None,
    *,
    skip: int = 0,
    take: int = 50,
) -> ToolCallPage:
    """One tenant's tool calls, newest first. Raises Unavailable."""
    window = Window.clamped(skip, take)
    wanted = wanted or ToolCallFilter()
    async with snapshot(pool) as conn:
        rows = await conn.fetch(
            sql("list_tool_calls"),
            storable(tenant),
            wanted.run_id,
            None if wanted.tool is None else storable(wanted.tool),
            None if wanted.state is None else wanted.state.value,
            wanted.since,
            wanted.until,
            window.skip,
            window.take + 1,
        )
    return ToolCallPage(
        tool_calls=[record_from(row) for row in rows[: window.take]],
        skip=window.skip,
        take=window.take,
        more=len(rows) > window.take,
    )
