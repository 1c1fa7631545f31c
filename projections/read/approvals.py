"""Lists of approvals, and those that nobody decided in time."""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from domain.approval import ApprovalState
from domain.ids import RunId
from projections.approval_record import ApprovalRecord
from projections.approvals import record_from
from projections.read.snapshot import snapshot
from projections.read.window import Window
from projections.sql import sql
from projections.values import storable


class ApprovalFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which approvals of a tenant; None asks for any."""

    state: ApprovalState | None = None
    agent: str | None = None
    session_id: str | None = None


class ApprovalPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list, newest first."""

    approvals: list[ApprovalRecord]
    skip: int
    take: int
    more: bool
    """Whether the list goes on after this part."""


class Overdue(NamedTuple):
    run_id: RunId
    expires_at: datetime


_BEGINNING = Overdue(RunId(UUID(int=0)), datetime.min.replace(tzinfo=UTC))


async def list_approvals(
    pool: asyncpg.Pool, tenant: str, wanted: ApprovalFilter | None = None, *, skip: int = 0, take: int = 50
) -> ApprovalPage:
    """One tenant's approvals, newest first. Raises Unavailable."""
    window, wanted = Window.clamped(skip, take), wanted or ApprovalFilter()
    async with snapshot(pool) as conn:
        rows = await conn.fetch(
            sql("list_approvals"),
            storable(tenant),
            None if wanted.state is None else wanted.state.value,
            None if wanted.agent is None else storable(wanted.agent),
            None if wanted.session_id is None else storable(wanted.session_id),
            window.skip,
            window.take + 1,
        )
    return ApprovalPage(
        approvals=[record_from(row) for row in rows[: window.take]],
        skip=window.skip,
        take=window.take,
        more=len(rows) > window.take,
    )


async def overdue_approvals(pool: asyncpg.Pool, limit: int, after: Overdue | None = None) -> list[Overdue]:
    """Those that should have expired, by the database's clock, behind this one. Raises Unavailable."""
    place = after or _BEGINNING
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("overdue_approvals"), place.expires_at, place.run_id, limit)
    return [Overdue(RunId(row["run_id"]), row["expires_at"]) for row in rows]


async def count_pending(pool: asyncpg.Pool) -> int:
    """How many wait for somebody, of all tenants. Raises Unavailable."""
    async with snapshot(pool) as conn:
        return int(await conn.fetchval(sql("count_pending_approvals")))
