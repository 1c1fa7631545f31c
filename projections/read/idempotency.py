"""Idempotency keys: lists for operators, and those that nobody has settled."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec

from domain.run import RunStatus
from projections.idempotency import record_from
from projections.idempotency_record import KeyRecord, KeyState
from projections.read.snapshot import snapshot
from projections.read.window import Window
from projections.sql import sql
from projections.values import storable

_PAGE = 100


class KeyEntry(KeyRecord, frozen=True, kw_only=True):
    """A key in a list. In progress while its run has ended, or is nobody's any more: look into it."""

    run_status: RunStatus | None = None
    """What the views have of the run that the key was reserved with."""


class KeyPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list, newest first."""

    keys: list[KeyEntry]
    skip: int
    take: int
    more: bool
    """Whether the list goes on after this part."""


async def list_keys(
    pool: asyncpg.Pool, tenant: str, state: KeyState | None = None, *, skip: int = 0, take: int = 50
) -> KeyPage:
    """One tenant's keys, newest first. Raises Unavailable."""
    window = Window.clamped(skip, take)
    async with snapshot(pool) as conn:
        rows = await conn.fetch(
            sql("list_idempotency"),
            storable(tenant),
            None if state is None else state.value,
            window.skip,
            window.take + 1,
        )
    return KeyPage(
        keys=[_entry(row) for row in rows[: window.take]],
        skip=window.skip,
        take=window.take,
        more=len(rows) > window.take,
    )


async def unsettled(pool: asyncpg.Pool, late_s: float) -> AsyncIterator[tuple[str, str]]:
    """Tenant and key of those in progress whose run ended longer ago than `late_s`. Raises Unavailable."""
    after: tuple[datetime, UUID] = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))
    while True:
        async with snapshot(pool) as conn:
            rows = await conn.fetch(sql("unsettled_idempotency"), *after, timedelta(seconds=late_s), _PAGE)
        for row in rows:
            yield row["tenant_id"], row["key"]
        if len(rows) < _PAGE:
            return
        after = (rows[-1]["reserved_at"], rows[-1]["stream_id"])


def _entry(row: asyncpg.Record) -> KeyEntry:
    status = row["run_status"]
    return KeyEntry(
        **msgspec.structs.asdict(record_from(row)), run_status=None if status is None else RunStatus(status)
    )
