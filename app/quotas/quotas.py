"""Admission under quotas: on all hosts together no more runs begin than a limit has room for (BUDGET-6)."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import NamedTuple
from weakref import WeakValueDictionary

import asyncpg

from app.db.errors import StoreUnavailable
from app.db.pool import translated
from app.metrics import Metrics
from app.quotas.sql import sql
from domain.ids import RunId
from domain.quota import Metric, Quota, QuotaExceeded, Standing, first_refusing

_BEGINS_WITHIN = timedelta(seconds=60)
"""A run that was admitted and is not in the log by then will never be there."""


class Asked(NamedTuple):
    """A run that is to begin."""

    run_id: RunId
    agent: str


class Standings(NamedTuple):
    """How much a tenant has used, as of one snapshot of the database, at its time `now`.

    Charges up to `position` in the log are in it.
    """

    standings: list[Standing]
    now: datetime
    position: int


class Quotas:
    """Every method raises StoreUnavailable. Without a quota that concerns it, a submission costs no query."""

    def __init__(
        self, quotas: Iterable[Quota], pool: asyncpg.Pool, *, currency: str, metrics: Metrics
    ) -> None:
        self._quotas = tuple(quotas)
        self._pool = pool
        self._currency = currency
        self._metrics = metrics
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, tenant: str) -> tuple[Quota, ...]:
        """Those that concern the tenant, whichever the agent."""
        return tuple(quota for quota in self._quotas if quota.tenant in (None, tenant))

    async def standings(self, tenant: str) -> Standings:
        """The tenant's quotas, each with what is used of it. There must be one."""
        with translated():
            async with self._pool.acquire() as conn:
                return await self._read(conn, tenant, self.of(tenant))

    @asynccontextmanager
    async def admitted(self, tenant: str, *asked: Asked) -> AsyncIterator[None]:
        """Around what begins these runs. Raise QuotaExceeded if they may not begin."""
        await self.admit(tenant, asked)
        try:
            yield
        except (StoreUnavailable, asyncio.CancelledError):
            raise  # they may have begun all the same; the log knows
        except BaseException:
            with suppress(StoreUnavailable):
                await self.release(asked)
            raise

    async def admit(self, tenant: str, asked: Sequence[Asked]) -> None:
        """Count these runs as begun, all of them, or raise QuotaExceeded and count none.

        Whoever does not begin them after all says so with `release`; otherwise they count for a minute.
        """
        agents = {one.agent for one in asked}
        quotas = [q for q in self._quotas if any(q.concerns(tenant, agent) for agent in agents)]
        if not quotas:
            return
        # One connection of this host waits for its turn with the other hosts, not all of them.
        turn = self._turns.setdefault(tenant, asyncio.Lock())
        async with turn:
            with translated():
                async with self._pool.acquire() as conn, conn.transaction():
                    await conn.execute(sql("lock"), tenant)
                    await self._admit(conn, tenant, asked, quotas)

    async def release(self, asked: Sequence[Asked]) -> None:
        """These runs were admitted and have not begun."""
        if self._quotas:
            with translated():
                await self._pool.execute(sql("release"), [one.run_id for one in asked])

    async def _admit(
        self, conn: asyncpg.pool.PoolConnectionProxy, tenant: str, asked: Sequence[Asked], quotas: list[Quota]
    ) -> None:
        found = await self._read(conn, tenant, quotas)
        refusing = first_refusing(
            found.standings,
            lambda quota: sum(quota.concerns(tenant, one.agent) for one in asked),
        )
        if refusing is not None:
            self._metrics.quota_refusals.labels(refusing.quota.name, "submission").inc()
            raise QuotaExceeded(refusing, found.now)
        if any(quota.metric is Metric.RUNS for quota in quotas):
            run_ids, agents = zip(*asked, strict=True)
            await conn.execute(sql("reserve"), run_ids, tenant, agents)
            await conn.execute(sql("forget"), tenant, _BEGINS_WITHIN)

    async def _read(
        self, conn: asyncpg.pool.PoolConnectionProxy, tenant: str, quotas: Sequence[Quota]
    ) -> Standings:
        rows = await conn.fetch(
            sql("standings"),
            tenant,
            [quota.agent for quota in quotas],
            [quota.metric.value for quota in quotas],
            [quota.period.value for quota in quotas],
            self._currency,
            _BEGINS_WITHIN,
        )
        standings = [
            Standing(quota=quota, used=row["used"], resets_at=quota.period.end(row["day"]))
            for quota, row in zip(quotas, rows, strict=True)
        ]
        return Standings(standings, rows[0]["now"], rows[0]["position"])
