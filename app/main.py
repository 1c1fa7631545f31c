"""The composition root: it alone knows all parts, opens them in order and closes them in reverse."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from app.assembly.approvals import approvals_of
from app.assembly.calls import gate_of, time_limits_of
from app.assembly.stores import event_log_at, open_database
from app.assembly.submissions import at_work, idempotency_of, quotas_of, worker_of
from app.assembly.supervision import duties_of, session_turns_of, watch_of, workbench_of
from app.assembly.workflows import workflows_of
from app.db.migrate import migrate
from app.db.pool import closing_pool, connect, database_time, server_version
from app.definitions.lookup import AgentLookup
from app.definitions.versions import AgentVersions
from app.http.application import bind, build_application, listen
from app.http.in_flight import IN_FLIGHT, InFlight
from app.http.services import About, Services
from app.http.watching import is_over
from app.identity import new_host_id
from app.jobs.batches import Batches
from app.jobs.leasing import Leasing, open_leases
from app.jobs.queue import JobQueue
from app.jobs.scheduler import Scheduler
from app.jobs.schedules import Schedules
from app.jobs.triggers import Triggers, triggers_of
from app.keys.keyring import Keyring
from app.keys.last_used import LastUsed
from app.keys.store import KeyStore
from app.metrics import Metrics
from app.models.adapters import accounts_of
from app.models.circuits import Circuits
from app.models.http import HttpSession
from app.quotas.watch import QuotaBook
from app.registry import AppDefinitions, Catalog
from app.settings.whole import Settings
from app.supervision.cancels import Cancels
from app.supervision.children import Children
from app.supervision.closing import Closing
from app.supervision.continuer import Continuer
from app.supervision.doubts import Doubts
from app.supervision.drain import Drain
from app.supervision.duties import Duties
from app.supervision.heartbeat import Heartbeat
from app.supervision.opening import Opener
from app.supervision.orphans import Orphans
from app.supervision.presence import Presence
from app.supervision.replays import Replays
from app.supervision.resolutions import Resolutions
from app.supervision.roster import Roster
from app.supervision.run_service import RunService
from app.supervision.runs import Runs
from app.supervision.supervisor import Supervisor
from app.supervision.workbench import Workbench
from app.workflow_catalog import WorkflowCatalog
from app.workflows.queued_runs import QueuedRuns
from domain.ids import RunId
from projections.views import Views

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class HostOptions:
    """What a host is started with. One without the API still answers probes and shows its metrics."""

    settings: Settings
    app: AppDefinitions
    data_dir: Path
    api: bool = True
    worker: bool = True


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host that serves. `parts` are the tasks that must not end while it does."""

    url: str
    services: Services
    bench: Workbench
    roster: Roster
    drain: Drain
    duties: Duties
    orphans: Orphans
    continuer: Continuer
    leasing: Leasing | None
    in_flight: InFlight
    parts: tuple[asyncio.Task[None], ...]

    async def finish(self) -> None:
        """Let what is live come to its end, and its watchers to theirs, as long as the drain allows."""
        await self.drain.wait_for(self.roster)
        await self.in_flight.settled(self._is_elsewhere, self.drain.left_s)
        await self.roster.emptied(self.drain.left_s)  # of what had just been admitted

    async def _is_elsewhere(self, run_id: RunId) -> bool:
        return self.roster.find(run_id) is None and not await is_over(self.services.log, run_id)


async def serve(options: HostOptions, *, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. `ready` is told the URL once requests are taken."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    async with open_host(options) as host:
        ready(host.url)
        await _until(stop, host.parts)
        host.drain.begin()
        if options.settings.drain.enabled:
            stop.clear()  # a second signal ends the patience
            await _until(stop, host.parts, host.finish())


@asynccontextmanager
async def open_host(options: HostOptions) -> AsyncIterator[Host]:
    """A serving host. What cannot work is refused before anything is started: settings, keys, the port."""
    settings = options.settings
    catalog = Catalog.build(settings, options.app)
    workflow_catalog = WorkflowCatalog.build(settings, options.app, catalog)
    triggers = triggers_of(settings.triggers)
    http = HttpSession(time_limits_of(settings))
    accounts = accounts_of(settings.providers, http)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(http.close)
        listener = stack.enter_context(bind(settings.server))
        dsn = await stack.enter_async_context(open_database(settings.dsn, options.data_dir))
        await migrate(dsn)
        pool = await stack.enter_async_context(closing_pool(dsn))
        metrics, host_id = Metrics(), new_host_id()
        presence = Presence(settings.run_reconciliation.orphan_threshold)
        metrics.heartbeat_age.set_function(lambda: presence.silent_s)
        heartbeat = await stack.enter_async_context(
            Heartbeat(lambda: connect(dsn), host_id, presence, settings.run_reconciliation, metrics)
        )
        event_log = await stack.enter_async_context(event_log_at(dsn, pool, settings.store, metrics))
        views = Views(pool, event_log)
        projecting = asyncio.create_task(views.run(), name="projections")
        stack.push_async_callback(_cancelled, projecting)
        leasing = None
        if options.worker:
            names = [agent.name for agent in catalog.agents()]
            names += [workflow.name for workflow in workflow_catalog.workflows()]
            queue = JobQueue(pool, host_id, tuple(names))
            silence_s = settings.run_reconciliation.orphan_threshold
            leasing = await stack.enter_async_context(
                open_leases(queue, lambda: connect(dsn), settings.async_run, silence_s=silence_s)
            )
        circuits = Circuits(settings.circuit_breaker, metrics, accounts)
        gate = gate_of(settings, options.app, circuits, metrics)
        quotas = quotas_of(settings, pool, metrics)
        book = QuotaBook(quotas, metrics)
        event_log.on_committed.append(book.committed)
        counting = asyncio.create_task(book.run(), name="quotas")
        stack.push_async_callback(_cancelled, counting)
        bench = workbench_of(settings, catalog, accounts, gate, event_log, presence, book, host_id, metrics)
        runs = Runs(event_log)
        gone_after_s = settings.run_reconciliation.orphan_threshold
        cancels = Cancels(pool, event_log, host_id, settings.cancellation, gone_after_s, metrics)
        closing = Closing(event_log, cancels)
        supervisor = Supervisor(closing, metrics)
        roster = Roster(supervisor, metrics, presence)
        stack.push_async_callback(roster.stop)
        doubts = Doubts(runs, roster)
        presence.on_doubt = doubts.look_into
        stack.push_async_callback(doubts.close)
        drain = Drain(settings.drain, metrics)
        orphans = Orphans(event_log, cancels, metrics)
        duties = duties_of(settings, pool, orphans, cancels, presence, host_id, metrics)
        agents = AgentLookup(catalog, event_log)
        children = Children(bench, agents, roster, supervisor, runs)
        turns = session_turns_of(settings, pool, event_log, supervisor)
        opener = Opener(bench, roster, supervisor, turns, children)
        continuer = Continuer(
            event_log, runs, opener, agents, drain, cancels, settings.run_continuation, metrics
        )
        orphans.on_orphaned.append(continuer.consider)
        resolutions = Resolutions(runs, continuer)
        replays = Replays(event_log, runs, continuer, opener, agents, drain, quotas)
        approvals = approvals_of(settings, pool, event_log, runs, duties)
        run_service = RunService(
            agents=agents,
            bench=bench,
            runs=runs,
            roster=roster,
            opener=opener,
            approvals=approvals,
            cancels=cancels,
            closing=closing,
            drain=drain,
            quotas=quotas,
        )
        workflows, recovery = workflows_of(
            settings,
            workflow_catalog,
            agents,
            pool,
            bench,
            children,
            roster,
            runs,
            drain,
            cancels,
            quotas,
            opener.refuse,
            metrics,
        )
        # Before the continuer, which says of what is left over why nothing goes on from it.
        orphans.on_orphaned.insert(0, recovery.consider)
        queued = QueuedRuns(run_service, workflows, recovery)
        worker = None if leasing is None else worker_of(leasing, queued, event_log, drain, settings, metrics)
        idempotency, decisions = idempotency_of(
            settings, pool, event_log, runs, roster, continuer, duties, metrics
        )
        stack.push_async_callback(idempotency.close)
        schedules = Schedules(
            event_log, agents, quotas, partial(database_time, pool), grace_s=settings.schedules.grace
        )
        keys = KeyStore(pool)
        last_used = LastUsed(keys.note_use)
        noting = asyncio.create_task(last_used.run(), name="last use of keys")
        stack.push_async_callback(_cancelled, noting)
        services = Services(
            runs=run_service,
            workflows=workflows,
            resolutions=resolutions,
            replays=replays,
            approvals=approvals,
            drain=drain,
            quotas=quotas,
            log=event_log,
            pool=pool,
            schedules=schedules,
            batches=Batches(event_log, pool, agents, quotas, opener.refuse),
            triggers=Triggers(
                triggers,
                event_log,
                partial(database_time, pool),
                metrics,
                quotas,
                max_attempts=settings.async_run.max_attempts,
            ),
            async_run=settings.async_run,
            views=views,
            circuits=circuits,
            accounts=accounts,
            providers=tuple(sorted(settings.providers)),
            watch=watch_of(settings, pool, http, duties, metrics),
            catalog=catalog,
            agents=agents,
            agent_versions=AgentVersions(catalog, agents, event_log),
            metrics=metrics,
            idempotency=idempotency,
            decisions=decisions,
            keys=keys,
            keyring=Keyring(keys.usable, settings.auth.cache_ttl),
            last_used=last_used,
            idempotency_settings=settings.idempotency,
            auth=settings.auth,
            cancellation=settings.cancellation,
            rate_limit=settings.rate_limit,
            server=settings.server,
            recording=settings.recording,
            about=About(
                version=version("tracon"),
                host_id=bench.host,
                postgres=await server_version(pool),
                profile=settings.profile,
            ),
        )
        application = build_application(services, api=options.api)
        url = await stack.enter_async_context(listen(application, listener))
        watching = asyncio.create_task(event_log.watch(), name="event log")
        stack.push_async_callback(_cancelled, watching)
        beating = asyncio.create_task(heartbeat.watch(), name="heartbeat")
        stack.push_async_callback(_cancelled, beating)
        receiving = asyncio.create_task(cancels.receive(run_service.cancel_here), name="cancels")
        stack.push_async_callback(_cancelled, receiving)
        performing = asyncio.create_task(duties.run(drain.begun), name="periodic duties")
        stack.push_async_callback(_cancelled, performing)
        scheduler = Scheduler(schedules, pool, settings.schedules, metrics)
        working = [] if leasing is None or worker is None else at_work(leasing, worker, scheduler)
        for task in working:
            stack.push_async_callback(_cancelled, task)
        yield Host(
            url=url,
            services=services,
            bench=bench,
            roster=roster,
            drain=drain,
            duties=duties,
            orphans=orphans,
            continuer=continuer,
            in_flight=application[IN_FLIGHT],
            leasing=leasing,
            parts=(projecting, watching, counting, noting, beating, receiving, performing, *working),
        )


async def _until(
    stop: asyncio.Event,
    parts: tuple[asyncio.Task[None], ...],
    finished: Coroutine[Any, Any, None] | None = None,
) -> None:
    """Return when told to stop, or when that is finished. A part that ends first takes the host with it."""
    ends = {asyncio.ensure_future(end) for end in (stop.wait(), finished) if end is not None}
    try:
        done, _ = await asyncio.wait({*ends, *parts}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
    for part in done - ends:
        part.result()
        raise RuntimeError(f"{part.get_name()} ended while the host was serving")
    for end in done & ends:
        end.result()


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
