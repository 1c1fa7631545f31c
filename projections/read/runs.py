"""Lists of runs."""

from datetime import datetime

import asyncpg
import msgspec

from domain.run import RunStatus
from projections.read.snapshot import snapshot
from projections.read.window import Window
from projections.run_record import RunRecord
from projections.runs import record_from
from projections.sql import sql
from projections.values import storable

COUNTED_AT_MOST = 10_000


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs of a tenant; None asks for any. `model_id` is of the model that answered last."""

    status: RunStatus | None = None
    agent: str | None = None
    session_id: str | None = None
    model_id: str | None = None
    since: datetime | None = None
    """Created then or later."""
    until: datetime | None = None
    """Created before then."""
    roots: bool = False
    """Only those that no other run has started."""


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list, newest first."""

    runs: list[RunRecord]
    skip: int
    take: int
    more: bool
    """Whether the list goes on after this part."""
    total: int | None = None
    """How many runs match, if that was asked for; it is not counted past 10,000."""


async def list_runs(
    pool: asyncpg.Pool,
    tenant: str,
    wanted: RunFilter | None = None,
    *,
    skip: int = 0,
    take: int = 50,
    with_total: bool = False,
) -> RunPage:
    """One tenant's runs, newest first. Raises Unavailable."""
    window = Window.clamped(skip, take)
    arguments = _arguments(tenant, wanted or RunFilter())
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("list_runs"), *arguments, window.skip, window.take + 1)
        total = await conn.fetchval(sql("count_runs"), *arguments, COUNTED_AT_MOST) if with_total else None
    return RunPage(
        runs=[record_from(row) for row in rows[: window.take]],
        skip=window.skip,
        take=window.take,
        more=len(rows) > window.take,
        total=total,
    )


def _arguments(tenant: str, wanted: RunFilter) -> tuple[object, ...]:
    return (
        storable(tenant),
        None if wanted.status is None else wanted.status.value,
        _text(wanted.agent),
        _text(wanted.session_id),
        _text(wanted.model_id),
        wanted.since,
        wanted.until,
        wanted.roots,
    )


def _text(value: str | None) -> str | None:
    return None if value is None else storable(value)
