"""An admission leaves a claim behind, which counts until the statistics have the run, or it never began."""

from datetime import timedelta
from decimal import Decimal
from functools import partial

import asyncpg
import pytest

from app.db.errors import StoreUnavailable
from app.db.pool import connect
from app.identity import new_run_id
from app.metrics import Metrics
from app.quotas.quotas import Asked, Quotas
from app.store.event_log import Change, EventLog
from domain.events import RunCreated, RunKind
from domain.ids import DEFAULT_TENANT, RunId, Version, run_stream
from domain.messages import UserMessage
from domain.quota import Metric, Period, Quota, QuotaExceeded

ONE_RUN = Quota(name="q", metric=Metric.RUNS, period=Period.DAY, limit=Decimal(1))


def quotas_of(pool: asyncpg.Pool) -> Quotas:
    return Quotas([ONE_RUN], pool, currency="USD", metrics=Metrics())


async def used(quotas: Quotas) -> Decimal:
    [standing] = (await quotas.standings(DEFAULT_TENANT)).standings
    return standing.used


async def created(database: str, pool: asyncpg.Pool, run_id: RunId) -> None:
    event = RunCreated(
        tenant=DEFAULT_TENANT, kind=RunKind.AGENT, agent="a", input=(UserMessage(content="hello"),)
    )
    async with EventLog(pool, partial(connect, database), listen=None) as log:
        await log.append(
            Change(stream_id=run_stream(run_id), expected=Version(0), tenant=DEFAULT_TENANT, events=(event,))
        )


async def reserved_ago(pool: asyncpg.Pool, age: timedelta) -> None:
    await pool.execute("UPDATE quota_reservations SET reserved_at = clock_timestamp() - $1::interval", age)


async def test_who_dies_between_admission_and_beginning_uses_nothing_up_for_long(pool: asyncpg.Pool) -> None:
    """BUDGET-6: as if its host had been killed there."""
    quotas = quotas_of(pool)
    await quotas.admit(DEFAULT_TENANT, [Asked(new_run_id(), "a")])
    assert await used(quotas) == 1
    with pytest.raises(QuotaExceeded):
        await quotas.admit(DEFAULT_TENANT, [Asked(new_run_id(), "a")])
    await reserved_ago(pool, timedelta(seconds=61))
    assert await used(quotas) == 0
    await quotas.admit(DEFAULT_TENANT, [Asked(new_run_id(), "a")])
    assert await pool.fetchval("SELECT count(*) FROM quota_reservations") == 1


async def test_a_run_counts_once_before_and_after_the_statistics_have_it(
    database: str, pool: asyncpg.Pool
) -> None:
    """BUDGET-6: however old its reservation is, and however far behind the statistics are."""
    quotas, run_id = quotas_of(pool), new_run_id()
    await quotas.admit(DEFAULT_TENANT, [Asked(run_id, "a")])
    await created(database, pool, run_id)
    await reserved_ago(pool, timedelta(seconds=61))
    assert await used(quotas) == 1
    with pytest.raises(QuotaExceeded):
        await quotas.admit(DEFAULT_TENANT, [Asked(new_run_id(), "a")])
    position = await pool.fetchval("SELECT max(notification_id) FROM stored_events")
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("DELETE FROM notification_tracking WHERE application_name = 'statistics'")
        await conn.execute(
            "INSERT INTO notification_tracking (application_name, notification_id) VALUES ('statistics', $1)",
            position,
        )
        await conn.execute(
            "INSERT INTO statistics_agents (tenant_id, day, agent, created, started, completed, failed,"
            " cancelled, ended_unstarted, tool_calls, failed_tool_calls, unknown_tool_calls)"
            " VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 'a', 1, 0, 0, 0, 0, 0, 0, 0, 0)",
            DEFAULT_TENANT,
        )
    assert await used(quotas) == 1


async def test_what_fails_before_it_begins_gives_its_place_back(pool: asyncpg.Pool) -> None:
    quotas = quotas_of(pool)
    with pytest.raises(RuntimeError):
        async with quotas.admitted(DEFAULT_TENANT, Asked(new_run_id(), "a")):
            raise RuntimeError("its session is busy, say")
    assert await used(quotas) == 0


async def test_what_may_have_begun_keeps_its_place(pool: asyncpg.Pool) -> None:
    """BUDGET-6: nobody knows whether the append arrived, so nobody gets the place twice."""
    quotas = quotas_of(pool)
    with pytest.raises(StoreUnavailable):
        async with quotas.admitted(DEFAULT_TENANT, Asked(new_run_id(), "a")):
            raise StoreUnavailable("the answer never came")
    assert await used(quotas) == 1
