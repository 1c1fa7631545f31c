"""What the runs of a host are worked on with, and what is done for them in between."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from app.assembly.calls import Calls, chain_link_of, prices_of
from app.assembly.ground import Ground
from app.models.http import HttpSession
from app.models.looking import lookers_of
from app.quotas.watch import QuotaBook
from app.supervision.agent_tools import AgentTools
from app.supervision.cancels import Cancels
from app.supervision.children import Children
from app.supervision.closing import Closing
from app.supervision.continuer import Continuer
from app.supervision.doubts import Doubts
from app.supervision.drain import Drain
from app.supervision.duties import Duties, Duty
from app.supervision.fleet import Fleet
from app.supervision.opening import Opener
from app.supervision.orphans import Orphans
from app.supervision.provider_watch import ProviderWatch
from app.supervision.reconciler import Reconciler
from app.supervision.roster import Roster
from app.supervision.runs import Runs
from app.supervision.session_turns import SessionTurns
from app.supervision.singleton import PERIODIC_WORK, Singleton
from app.supervision.spending import Trees
from app.supervision.supervisor import Supervisor
from app.supervision.workbench import Workbench
from app.tools.runner import ToolRunner

_SETTLE_CANCELS_S = 60.0
_COUNT_FLEET_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Core:
    """What sees the runs of a host to their end."""

    bench: Workbench
    runs: Runs
    roster: Roster
    closing: Closing
    cancels: Cancels
    orphans: Orphans
    duties: Duties
    drain: Drain
    children: Children
    opener: Opener
    continuer: Continuer


def workbench_of(ground: Ground, calls: Calls, quotas: QuotaBook) -> Workbench:
    """What every actor of the host works with."""
    settings, catalog, currency = (
        ground.settings,
        ground.definitions.catalog,
        ground.settings.pricing.currency,
    )
    return Workbench(
        host=ground.host_id,
        log=ground.log,
        presence=ground.presence,
        accounts=calls.accounts,
        gate=calls.gate,
        chain_link=partial(chain_link_of, settings.providers),
        prices=prices_of(settings.providers),
        currency=currency,
        tools=catalog.tools,
        agents=AgentTools(catalog, ground.agents),
        trees=Trees(ground.log, settings.agent_graph, quotas, currency, ground.metrics),
        tool_runner=ToolRunner(settings.cancellation),
        metrics=ground.metrics,
        turn=settings.turn,
        tool_loop=settings.tool_loop,
        chain=settings.chain,
        recording=settings.recording,
        store=settings.store,
        approvals=settings.approvals,
    )


def core_of(ground: Ground, bench: Workbench, stack: AsyncExitStack) -> Core:
    """Actors, those who watch over them, and those who close what lost its own."""
    settings, log, metrics = ground.settings, ground.log, ground.metrics
    runs = Runs(log)
    gone_after_s = settings.run_reconciliation.orphan_threshold
    cancels = Cancels(ground.pool, log, ground.host_id, settings.cancellation, gone_after_s, metrics)
    closing = Closing(log, cancels)
    supervisor = Supervisor(closing, metrics)
    roster = Roster(supervisor, metrics, ground.presence)
    stack.push_async_callback(roster.stop)
    doubts = Doubts(runs, roster)
    ground.presence.on_doubt = doubts.look_into
    stack.push_async_callback(doubts.close)
    drain, orphans = Drain(settings.drain, metrics), Orphans(log, cancels, metrics)
    children = Children(bench, ground.agents, roster, supervisor, runs)
    opener = Opener(bench, roster, supervisor, session_turns_of(ground, supervisor), children)
    continuer = Continuer(
        log, runs, opener, ground.agents, drain, cancels, settings.run_continuation, metrics
    )
    orphans.on_orphaned.append(continuer.consider)
    return Core(
        bench=bench,
        runs=runs,
        roster=roster,
        closing=closing,
        cancels=cancels,
        orphans=orphans,
        duties=duties_of(ground, orphans, cancels),
        drain=drain,
        children=children,
        opener=opener,
        continuer=continuer,
    )


def session_turns_of(ground: Ground, supervisor: Supervisor) -> SessionTurns:
    """Whose turn it is in a session, by the settings."""
    settings = ground.settings
    # A run takes that long to end once its deadline has passed, at the very most.
    ending_s = settings.cancellation.grace + settings.store.outage_patience + 60.0
    return SessionTurns(
        ground.log,
        settings.sessions,
        now=ground.now,
        close=supervisor.close,
        limit_s=settings.turn.timeout + ending_s,
        continues=settings.run_continuation.enabled,
    )


def watch_of(ground: Ground, http: HttpSession, duties: Duties) -> ProviderWatch | None:
    """What looks at the providers, where that is wanted. It becomes a duty."""
    settings, metrics = ground.settings, ground.metrics
    if (period_s := settings.health.background_interval) is None:
        return None
    lookers = lookers_of(settings.providers, http, settings.health.probe_timeout)
    watch = ProviderWatch(ground.pool, lookers, metrics)
    duties.add(Duty(name="health", period_s=period_s, perform=watch.look, leave=metrics.provider_up.clear))
    return watch


def duties_of(ground: Ground, orphans: Orphans, cancels: Cancels) -> Duties:
    """The periodic work of the host, under one owner where that is wanted."""
    settings, pool, metrics = ground.settings, ground.pool, ground.metrics
    singleton = Singleton(PERIODIC_WORK, ground.host_id, pool, settings.singleton_execution, metrics)
    duties, reconciliation = Duties(singleton, metrics), settings.run_reconciliation
    if reconciliation.enabled:
        reconciler = Reconciler(pool, orphans, ground.host_id, ground.presence, reconciliation)
        scan = Duty(name="reconciliation", period_s=reconciliation.scan_interval, perform=reconciler.scan)
        duties.add(scan)
    fleet = Fleet(pool, reconciliation.orphan_threshold, metrics)
    duties.add(Duty(name="fleet", period_s=_COUNT_FLEET_S, perform=fleet.count, leave=fleet.leave))
    duties.add(Duty(name="cancels", period_s=_SETTLE_CANCELS_S, perform=lambda _: cancels.settle()))
    return duties
