"""Lists of schedules, and those that are due."""

from typing import NamedTuple

import asyncpg
import msgspec

from projections.read.snapshot import snapshot
from projections.read.window import Window
from projections.schedule_record import ScheduleRecord
from projections.schedules import record_from
from projections.sql import sql
from projections.values import storable


class SchedulePage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list, by name."""

    schedules: list[ScheduleRecord]
    skip: int
    take: int
    more: bool
    """Whether the list goes on after this part."""


class Due(NamedTuple):
    """A schedule whose time has come, or `in_s` seconds before."""

    tenant: str
    name: str
    in_s: float


async def list_schedules(pool: asyncpg.Pool, tenant: str, *, skip: int = 0, take: int = 50) -> SchedulePage:
    """One tenant's schedules, by name. Raises Unavailable."""
    window = Window.clamped(skip, take)
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("list_schedules"), storable(tenant), window.skip, window.take + 1)
    return SchedulePage(
        schedules=[record_from(row) for row in rows[: window.take]],
        skip=window.skip,
        take=window.take,
        more=len(rows) > window.take,
    )


async def next_due(pool: asyncpg.Pool, limit: int) -> list[Due]:
    """The schedules that are due first, by the database's clock, whether their time has come or not.

    Raises Unavailable.
    """
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("due_schedules"), limit)
    return [Due(*row) for row in rows]
