"""What all parts of a host stand on: its settings and definitions, its database and its log."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import asyncpg

from app.assembly.background import Background
from app.assembly.stores import event_log_at, open_database
from app.db.migrate import migrate
from app.db.pool import closing_pool, connect, database_time
from app.definitions.lookup import AgentLookup
from app.identity import new_host_id
from app.jobs.leasing import Leasing, open_leases
from app.jobs.queue import JobQueue
from app.metrics import Metrics
from app.registry import AppDefinitions, Catalog
from app.settings.whole import Settings
from app.store.event_log import EventLog
from app.supervision.heartbeat import Heartbeat
from app.supervision.presence import Presence
from app.workflow_catalog import WorkflowCatalog
from projections.views import Views


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """What this host can run, checked before anything is started."""

    app: AppDefinitions
    catalog: Catalog
    workflows: WorkflowCatalog


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Open for as long as the host is."""

    settings: Settings
    definitions: Definitions
    host_id: str
    metrics: Metrics
    dsn: str
    pool: asyncpg.Pool
    log: EventLog
    views: Views
    presence: Presence
    heartbeat: Heartbeat
    agents: AgentLookup

    @property
    def now(self) -> Callable[[], Awaitable[datetime]]:
        """Asks the only clock that decides anything."""
        return partial(database_time, self.pool)


def definitions_of(settings: Settings, app: AppDefinitions) -> Definitions:
    """Raise SettingsError with everything that does not fit together."""
    catalog = Catalog.build(settings, app)
    return Definitions(app=app, catalog=catalog, workflows=WorkflowCatalog.build(settings, app, catalog))


async def open_ground(
    settings: Settings,
    definitions: Definitions,
    data_dir: Path,
    stack: AsyncExitStack,
    background: Background,
) -> Ground:
    """Open the database, bring it up to date, and begin to follow its log."""
    dsn = await stack.enter_async_context(open_database(settings.dsn, data_dir))
    await migrate(dsn)
    pool = await stack.enter_async_context(closing_pool(dsn))
    metrics, host_id = Metrics(), new_host_id()
    presence = Presence(settings.run_reconciliation.orphan_threshold)
    metrics.heartbeat_age.set_function(lambda: presence.silent_s)
    heartbeat = await stack.enter_async_context(
        Heartbeat(lambda: connect(dsn), host_id, presence, settings.run_reconciliation, metrics)
    )
    log = await stack.enter_async_context(event_log_at(dsn, pool, settings.store, metrics))
    views = Views(pool, log)
    background.start(views.run(), "projections")
    return Ground(
        settings=settings,
        definitions=definitions,
        host_id=host_id,
        metrics=metrics,
        dsn=dsn,
        pool=pool,
        log=log,
        views=views,
        presence=presence,
        heartbeat=heartbeat,
        agents=AgentLookup(definitions.catalog, log),
    )


async def open_leasing(ground: Ground, stack: AsyncExitStack) -> Leasing:
    """The leases of a host that works on the queue."""
    definitions, settings = ground.definitions, ground.settings
    names = [agent.name for agent in definitions.catalog.agents()]
    names += [workflow.name for workflow in definitions.workflows.workflows()]
    queue = JobQueue(ground.pool, ground.host_id, tuple(names))
    leasing = await stack.enter_async_context(
        open_leases(
            queue,
            lambda: connect(ground.dsn),
            settings.async_run,
            silence_s=settings.run_reconciliation.orphan_threshold,
        )
    )
    ground.presence.claims.append(leasing.leases.holds)
    return leasing
