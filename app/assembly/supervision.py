"""What the runs of a host are worked on with, and what is done for them in between."""

from functools import partial

import asyncpg

from app.assembly.calls import chain_link_of, prices_of
from app.definitions.lookup import AgentLookup
from app.db.pool import database_time
from app.metrics import Metrics
from app.models.accounts import Accounts
from app.models.gate import Gate
from app.models.http import HttpSession
from app.models.looking import lookers_of
from app.quotas.watch import QuotaBook
from app.registry import Catalog
from app.settings.whole import Settings
from app.store.event_log import EventLog
from app.supervision.agent_tools import AgentTools
from app.supervision.cancels import Cancels
from app.supervision.duties import Duties, Duty
from app.supervision.fleet import Fleet
from app.supervision.orphans import Orphans
from app.supervision.presence import Presence
from app.supervision.provider_watch import ProviderWatch
from app.supervision.reconciler import Reconciler
from app.supervision.session_turns import SessionTurns
from app.supervision.singleton import PERIODIC_WORK, Singleton
from app.supervision.spending import Trees
from app.supervision.supervisor import Supervisor
from app.supervision.workbench import Workbench
from app.tools.runner import ToolRunner

_FORGET_CANCELS_S = 60.0
_COUNT_FLEET_S = 15.0


def workbench_of(
    settings: Settings,
    catalog: Catalog,
    accounts: Accounts,
    gate: Gate,
    event_log: EventLog,
    presence: Presence,
    quotas: QuotaBook,
    host_id: str,
    metrics: Metrics,
) -> Workbench:
    """What every actor of the host works with."""
    return Workbench(
        host=host_id,
        log=event_log,
        presence=presence,
        accounts=accounts,
        gate=gate,
        chain_link=partial(chain_link_of, settings.providers),
        prices=prices_of(settings.providers),
        currency=settings.pricing.currency,
        tools=catalog.tools,
        agents=AgentTools(catalog, AgentLookup(catalog, event_log)),
        trees=Trees(event_log, settings.agent_graph, quotas, settings.pricing.currency, metrics),
        tool_runner=ToolRunner(settings.cancellation),
        metrics=metrics,
        turn=settings.turn,
        tool_loop=settings.tool_loop,
        chain=settings.chain,
        recording=settings.recording,
        store=settings.store,
        approvals=settings.approvals,
    )


def session_turns_of(
    settings: Settings, pool: asyncpg.Pool, event_log: EventLog, supervisor: Supervisor
) -> SessionTurns:
    """Whose turn it is in a session, by the settings."""
    # A run takes that long to end once its deadline has passed, at the very most.
    ending_s = settings.cancellation.grace + settings.store.outage_patience + 60.0
    return SessionTurns(
        event_log,
        settings.sessions,
        now=partial(database_time, pool),
        close=supervisor.close,
        limit_s=settings.turn.timeout + ending_s,
        continues=settings.run_continuation.enabled,
    )


def watch_of(
    settings: Settings, pool: asyncpg.Pool, http: HttpSession, duties: Duties, metrics: Metrics
) -> ProviderWatch | None:
    """What looks at the providers, where that is wanted. It becomes a duty."""
    if (period_s := settings.health.background_interval) is None:
        return None
    lookers = lookers_of(settings.providers, http, settings.health.probe_timeout)
    watch = ProviderWatch(pool, lookers, metrics)
    duties.add(Duty(name="health", period_s=period_s, perform=watch.look, leave=metrics.provider_up.clear))
    return watch


def duties_of(
    settings: Settings,
    pool: asyncpg.Pool,
    orphans: Orphans,
    cancels: Cancels,
    presence: Presence,
    host_id: str,
    metrics: Metrics,
) -> Duties:
    """The periodic work of the host, under one owner where that is wanted."""
    singleton = Singleton(PERIODIC_WORK, host_id, pool, settings.singleton_execution, metrics)
    duties, reconciliation = Duties(singleton, metrics), settings.run_reconciliation
    if reconciliation.enabled:
        reconciler = Reconciler(pool, orphans, host_id, presence, reconciliation)
        scan = Duty(name="reconciliation", period_s=reconciliation.scan_interval, perform=reconciler.scan)
        duties.add(scan)
    fleet = Fleet(pool, reconciliation.orphan_threshold, metrics)
    duties.add(Duty(name="fleet", period_s=_COUNT_FLEET_S, perform=fleet.count, leave=fleet.leave))
    duties.add(Duty(name="cancels", period_s=_FORGET_CANCELS_S, perform=lambda _: cancels.forget()))
    return duties
