"""What a host adds to the statistics of a tenant: its own charges, for as long as those lack them."""

from datetime import UTC, datetime
from decimal import Decimal

import asyncpg

from app.identity import new_run_id
from app.metrics import Metrics
from app.quotas.quotas import Quotas
from app.quotas.watch import QuotaBook
from domain.budget import Charge
from domain.events import Recorded, TextDelta
from domain.ids import DEFAULT_TENANT, Version, run_stream
from domain.quota import Metric, Period, Quota

SOME_TOKENS = Quota(name="q", metric=Metric.TOKENS, period=Period.DAY, limit=Decimal(100))


async def statistics_are_at(pool: asyncpg.Pool, position: int) -> None:
    await pool.execute(
        "INSERT INTO notification_tracking (application_name, notification_id) VALUES ('statistics', $1)"
        " ON CONFLICT (application_name) DO UPDATE SET notification_id = excluded.notification_id",
        position,
    )


async def test_a_charge_counts_once_whenever_the_host_hears_that_it_is_committed(pool: asyncpg.Pool) -> None:
    """BUDGET-6: the statistics may be read with it before its own host has its place in the log."""
    metrics = Metrics()
    book = QuotaBook(Quotas([SOME_TOKENS], pool, currency="USD", metrics=metrics), metrics)
    run_id = new_run_id()
    watch = book.watch(run_id, DEFAULT_TENANT, "a")
    assert watch is not None
    await statistics_are_at(pool, 10)
    await watch.begin()
    for sequence, position, lacking in ((1, 7, 0), (2, 11, 100)):
        watch.charge(sequence, Charge(tokens=100))
        assert watch.is_spent
        event = TextDelta(step=1, text="x")
        recorded = Recorded(
            stream_id=run_stream(run_id),
            sequence=Version(sequence),
            position=position,
            tenant=DEFAULT_TENANT,
            at=datetime.now(UTC),
            event=event,
        )
        book.committed([recorded])
        [standing] = book.standings(DEFAULT_TENANT)
        assert standing.used == lacking
