"""What takes work in for a host besides plain requests: workers with their leases, and idempotency keys."""

from functools import partial

from app.assembly.background import Background
from app.assembly.ground import Ground
from app.assembly.supervision import Core
from app.http.forms import forms
from app.idempotency.decisions import Decisions
from app.idempotency.keys import Keys
from app.idempotency.service import Idempotency
from app.idempotency.settling import Settling
from app.idempotency.sweeper import Sweeper
from app.jobs.leasing import Leasing
from app.jobs.scheduler import Scheduler
from app.jobs.schedules import Schedules
from app.jobs.worker import Worker
from app.quotas.quotas import Quotas
from app.supervision.drain import Drain
from app.supervision.duties import Duty
from app.workflows.queued_runs import QueuedRuns
from domain.ids import RunId
from domain.quota import Quota
from projections.jobs import CHANNEL as JOBS


def start_working(
    ground: Ground,
    leasing: Leasing,
    runs: QueuedRuns,
    schedules: Schedules,
    drain: Drain,
    background: Background,
) -> None:
    """Take queued runs until the host drains, and see to it that schedules are met."""
    settings, metrics = ground.settings, ground.metrics
    worker = Worker(
        leasing,
        runs,
        partial(ground.log.bell_of, JOBS, ""),
        may_lease=lambda: not drain.begun.is_set(),
        settings=settings.async_run,
        metrics=metrics,
    )
    leasing.keeper.on_lost = worker.lost
    scheduler = Scheduler(schedules, ground.pool, settings.schedules, metrics)
    background.start(scheduler.run(), "scheduler")
    background.start(leasing.keeper.watch(), "keeper of leases")
    background.start(worker.run(), "worker")


def idempotency_of(ground: Ground, core: Core) -> tuple[Idempotency, Decisions]:
    """What answers requests with a key, and what operators decide of keys. The sweep becomes a duty."""
    settings = ground.settings

    def is_live(run_id: RunId) -> bool:
        return core.roster.find(run_id) is not None

    keys = Keys(ground.log, settings.store.outage_patience)
    settling = Settling(
        keys,
        core.runs,
        forms(settings.server.prefix),
        continues=settings.run_continuation.enabled,
        consider=core.continuer.consider,
    )
    if settings.idempotency.enabled:
        sweeper, period_s = Sweeper(ground.pool, settling), settings.idempotency.sweep_interval
        core.duties.add(Duty(name="idempotency", period_s=period_s, perform=lambda _: sweeper.sweep()))
    service = Idempotency(
        settings.idempotency,
        ground.log,
        keys,
        settling,
        is_live=is_live,
        now=ground.now,
        metrics=ground.metrics,
    )
    return service, Decisions(keys, is_live=is_live)


def quotas_of(ground: Ground) -> Quotas:
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
        for name, one in ground.settings.quotas.items()
    )
    currency = ground.settings.pricing.currency
    return Quotas(quotas, ground.pool, currency=currency, metrics=ground.metrics)
