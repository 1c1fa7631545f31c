"""What takes work in for a host besides plain requests: workers with their leases, and idempotency keys."""

import asyncio
from functools import partial

import asyncpg

from app.db.pool import database_time
from app.http.forms import forms
from app.idempotency.decisions import Decisions
from app.idempotency.keys import Keys
from app.idempotency.service import Idempotency
from app.idempotency.settling import Settling
from app.idempotency.sweeper import Sweeper
from app.jobs.leasing import Leasing
from app.jobs.scheduler import Scheduler
from app.jobs.worker import Worker
from app.metrics import Metrics
from app.quotas.quotas import Quotas
from app.settings.whole import Settings
from app.store.event_log import EventLog
from app.supervision.continuer import Continuer
from app.supervision.drain import Drain
from app.supervision.duties import Duties, Duty
from app.supervision.roster import Roster
from app.supervision.runs import Runs
from app.workflows.queued_runs import QueuedRuns
from domain.ids import RunId
from domain.quota import Quota
from projections.jobs import CHANNEL as JOBS


def worker_of(
    leasing: Leasing,
    runs: QueuedRuns,
    event_log: EventLog,
    drain: Drain,
    settings: Settings,
    metrics: Metrics,
) -> Worker:
    """The worker that takes queued runs until the host drains."""
    worker = Worker(
        leasing,
        runs,
        partial(event_log.bell_of, JOBS, ""),
        may_lease=lambda: not drain.begun.is_set(),
        settings=settings.async_run,
        metrics=metrics,
    )
    leasing.keeper.on_lost = worker.lost
    return worker


def at_work(leasing: Leasing, worker: Worker, scheduler: Scheduler) -> list[asyncio.Task[None]]:
    """The tasks of a host that works on the queue."""
    return [
        asyncio.create_task(scheduler.run(), name="scheduler"),
        asyncio.create_task(leasing.keeper.watch(), name="keeper of leases"),
        asyncio.create_task(worker.run(), name="worker"),
    ]


def idempotency_of(
    settings: Settings,
    pool: asyncpg.Pool,
    event_log: EventLog,
    runs: Runs,
    roster: Roster,
    continuer: Continuer,
    duties: Duties,
    metrics: Metrics,
) -> tuple[Idempotency, Decisions]:
    """What answers requests with a key, and what operators decide of keys. The sweep becomes a duty."""

    def is_live(run_id: RunId) -> bool:
        return roster.find(run_id) is not None

    keys = Keys(event_log, settings.store.outage_patience)
    settling = Settling(
        keys,
        runs,
        forms(settings.server.prefix),
        continues=settings.run_continuation.enabled,
        consider=continuer.consider,
    )
    if settings.idempotency.enabled:
        sweeper = Sweeper(pool, settling)
        duties.add(
            Duty(
                name="idempotency",
                period_s=settings.idempotency.sweep_interval,
                perform=lambda _: sweeper.sweep(),
            )
        )
    service = Idempotency(
        settings.idempotency,
        event_log,
        keys,
        settling,
        is_live=is_live,
        now=partial(database_time, pool),
        metrics=metrics,
    )
    return service, Decisions(keys, is_live=is_live)


def quotas_of(settings: Settings, pool: asyncpg.Pool, metrics: Metrics) -> Quotas:
    """What tenants may use."""
    quotas = (
        Quota(
            name=name,
            metric=one.metric,
            period=one.period,
            limit=one.limit,
            tenant=one.tenant,
            agent=one.agent,
        )
        for name, one in settings.quotas.items()
    )
    return Quotas(quotas, pool, currency=settings.pricing.currency, metrics=metrics)
