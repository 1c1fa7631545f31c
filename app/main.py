"""The composition root: it alone knows all parts, opens them in order and closes them in reverse."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import asyncpg

from app.db import embedded
from app.db.migrate import migrate
from app.db.pool import closing_pool, connect, database_time, is_pooled
from app.http.application import bind, build_application, listen
from app.http.forms import forms
from app.http.in_flight import IN_FLIGHT, InFlight
from app.http.services import About, Services
from app.http.watching import is_over
from app.idempotency.decisions import Decisions
from app.idempotency.keys import Keys
from app.idempotency.service import Idempotency
from app.idempotency.settling import Settling
from app.idempotency.sweeper import Sweeper
from app.identity import new_host_id
from app.jobs.batches import Batches
from app.jobs.leasing import Leasing, open_leases
from app.jobs.queue import JobQueue
from app.jobs.scheduler import Scheduler
from app.jobs.schedules import Schedules
from app.jobs.triggers import Triggers, triggers_of
from app.jobs.worker import Worker
from app.keys.keyring import Keyring
from app.keys.last_used import LastUsed
from app.keys.store import KeyStore
from app.metrics import Metrics
from app.models.adapters import build
from app.models.circuits import Circuits
from app.models.classifiers import Classifiers
from app.models.gate import Gate
from app.models.http import HttpSession
from app.models.patience import TimeLimits
from app.models.places import Places
from app.models.port import ModelAdapter
from app.models.provider_settings import ProviderSettings
from app.models.response_cache import ResponseCache
from app.registry import AppDefinitions, Catalog
from app.settings import StoreSettings
from app.settings.errors import Problem, SettingsError
from app.settings.whole import Settings
from app.store.event_log import EventLog
from app.store.mapper import EventMapper
from app.supervision.cancels import CHANNEL as CANCELS
from app.supervision.cancels import Cancels
from app.supervision.continuer import Continuer
from app.supervision.doubts import Doubts
from app.supervision.drain import Drain
from app.supervision.duties import Duties, Duty
from app.supervision.heartbeat import Heartbeat
from app.supervision.opening import Opener
from app.supervision.orphans import Orphans
from app.supervision.presence import Presence
from app.supervision.reconciler import Reconciler
from app.supervision.replays import Replays
from app.supervision.resolutions import Resolutions
from app.supervision.roster import Roster
from app.supervision.run_service import RunService
from app.supervision.runs import Runs
from app.supervision.session_turns import SessionTurns
from app.supervision.singleton import PERIODIC_WORK, Singleton
from app.supervision.supervisor import Supervisor
from app.supervision.workbench import Workbench
from app.tools.runner import ToolRunner
from domain.agent import Link
from domain.chain import ChainLink
from domain.ids import RunId
from domain.pricing import Price
from projections.jobs import CHANNEL as JOBS
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
        for warning in options.settings.warnings():
            log.warning("settings.without_effect", extra={"warning": warning})
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
    triggers = triggers_of(settings.triggers)
    http = HttpSession(_time_limits(settings))
    adapters = {name: build(name, provider, http) for name, provider in settings.providers.items()}
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
        event_log = await stack.enter_async_context(_event_log(dsn, pool, settings.store, metrics))
        views = Views(pool, event_log)
        projecting = asyncio.create_task(views.run(), name="projections")
        stack.push_async_callback(_cancelled, projecting)
        leasing = None
        if options.worker:
            queue = JobQueue(pool, host_id, tuple(agent.name for agent in catalog.agents()))
            silence_s = settings.run_reconciliation.orphan_threshold
            leasing = await stack.enter_async_context(
                open_leases(queue, lambda: connect(dsn), settings.async_run, silence_s=silence_s)
            )
        circuits = Circuits(settings.circuit_breaker, metrics, settings.providers)
        gate = _gate(settings, options.app, circuits, metrics)
        bench = _workbench(settings, catalog, adapters, gate, event_log, presence, host_id, metrics)
        runs = Runs(event_log)
        supervisor = Supervisor(runs, metrics)
        roster = Roster(supervisor, metrics, presence)
        stack.push_async_callback(roster.stop)
        doubts = Doubts(runs, roster)
        presence.on_doubt = doubts.look_into
        stack.push_async_callback(doubts.close)
        gone_after_s = settings.run_reconciliation.orphan_threshold
        cancels = Cancels(pool, event_log, host_id, settings.cancellation, gone_after_s, metrics)
        drain = Drain(settings.drain, metrics)
        orphans = Orphans(event_log, metrics)
        duties = _duties(settings, pool, orphans, presence, host_id, metrics)
        opener = Opener(bench, roster, supervisor, _session_turns(settings, pool, event_log, supervisor))
        continuer = Continuer(event_log, runs, opener, catalog, drain, settings.run_continuation, metrics)
        orphans.on_orphaned.append(continuer.consider)
        resolutions = Resolutions(runs, continuer)
        replays = Replays(event_log, runs, continuer, opener, catalog, drain)
        run_service = RunService(
            catalog=catalog,
            bench=bench,
            runs=runs,
            roster=roster,
            opener=opener,
            cancels=cancels,
            drain=drain,
        )
        worker = (
            None if leasing is None else _worker(leasing, run_service, event_log, drain, settings, metrics)
        )
        idempotency, decisions = _idempotency(settings, pool, event_log, runs, roster, duties, metrics)
        stack.push_async_callback(idempotency.close)
        schedules = Schedules(
            event_log, catalog, partial(database_time, pool), grace_s=settings.schedules.grace
        )
        keys = KeyStore(pool)
        last_used = LastUsed(keys.note_use)
        noting = asyncio.create_task(last_used.run(), name="last use of keys")
        stack.push_async_callback(_cancelled, noting)
        services = Services(
            runs=run_service,
            resolutions=resolutions,
            replays=replays,
            drain=drain,
            log=event_log,
            pool=pool,
            schedules=schedules,
            batches=Batches(event_log, pool, catalog, opener.refuse),
            triggers=Triggers(
                triggers,
                event_log,
                partial(database_time, pool),
                metrics,
                max_attempts=settings.async_run.max_attempts,
            ),
            async_run=settings.async_run,
            views=views,
            circuits=circuits,
            providers=tuple(sorted(settings.providers)),
            catalog=catalog,
            metrics=metrics,
            idempotency=idempotency,
            decisions=decisions,
            keys=keys,
            keyring=Keyring(keys.usable, settings.auth.cache_ttl),
            last_used=last_used,
            idempotency_settings=settings.idempotency,
            auth=settings.auth,
            rate_limit=settings.rate_limit,
            server=settings.server,
            recording=settings.recording,
            about=About(
                version=version("tracon"),
                host_id=bench.host,
                postgres=await pool.fetchval("SHOW server_version"),
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
        working = [] if leasing is None or worker is None else _at_work(leasing, worker, scheduler)
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
            parts=(projecting, watching, noting, beating, receiving, performing, *working),
        )


@asynccontextmanager
async def open_database(dsn: str | None, data_dir: Path) -> AsyncIterator[str]:
    """The DSN to use: the given one, or that of a server in `data_dir`, which stops after its last user."""
    if dsn is not None:
        yield dsn
        return
    server = await embedded.start(data_dir)
    try:
        yield server.dsn()
    finally:
        await server.close()


@asynccontextmanager
async def open_log(dsn: str, store: StoreSettings) -> AsyncIterator[EventLog]:
    """The log alone, for commands that read it. Nothing is migrated."""
    async with closing_pool(dsn) as pool, _event_log(dsn, pool, store, Metrics()) as event_log:
        yield event_log


@asynccontextmanager
async def _event_log(
    dsn: str, pool: asyncpg.Pool, store: StoreSettings, metrics: Metrics
) -> AsyncIterator[EventLog]:
    # LISTEN does not pass a pooler in transaction mode.
    direct = store.direct_dsn or (None if is_pooled(dsn) else dsn)
    listen_on = None if direct is None else (lambda: connect(direct))
    async with EventLog(
        pool,
        lambda: connect(dsn),
        _mapper(store, os.environ),
        listen=listen_on,
        channels=(CANCELS, JOBS),
        strict=store.strict,
        metrics=metrics,
    ) as event_log:
        yield event_log


def _mapper(store: StoreSettings, environ: Mapping[str, str]) -> EventMapper:
    if store.encryption_key_env is None:
        return EventMapper(compress=store.compress)
    try:
        return EventMapper(compress=store.compress, key=environ[store.encryption_key_env])
    except KeyError:
        reason = f"the environment variable {store.encryption_key_env} is not set"
    except ValueError as error:
        reason = f"{store.encryption_key_env}: {error}"
    raise SettingsError([Problem(source="environment", key="store.encryption_key_env", reason=reason)])


def _workbench(
    settings: Settings,
    catalog: Catalog,
    adapters: Mapping[str, ModelAdapter],
    gate: Gate,
    event_log: EventLog,
    presence: Presence,
    host_id: str,
    metrics: Metrics,
) -> Workbench:
    return Workbench(
        host=host_id,
        log=event_log,
        presence=presence,
        adapters=adapters,
        gate=gate,
        chain_link=partial(_chain_link, settings.providers),
        prices=_prices(settings.providers),
        currency=settings.pricing.currency,
        tools=catalog.tools,
        tool_runner=ToolRunner(settings.cancellation),
        metrics=metrics,
        turn=settings.turn,
        tool_loop=settings.tool_loop,
        chain=settings.chain,
        recording=settings.recording,
        store=settings.store,
    )


def _session_turns(
    settings: Settings, pool: asyncpg.Pool, event_log: EventLog, supervisor: Supervisor
) -> SessionTurns:
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


def _duties(
    settings: Settings,
    pool: asyncpg.Pool,
    orphans: Orphans,
    presence: Presence,
    host_id: str,
    metrics: Metrics,
) -> Duties:
    singleton = Singleton(PERIODIC_WORK, host_id, pool, settings.singleton_execution, metrics)
    duties, reconciliation = Duties(singleton, metrics), settings.run_reconciliation
    if reconciliation.enabled:
        reconciler = Reconciler(pool, orphans, host_id, presence, reconciliation)
        scan = Duty(name="reconciliation", period_s=reconciliation.scan_interval, perform=reconciler.scan)
        duties.add(scan)
    return duties


def _worker(
    leasing: Leasing,
    run_service: RunService,
    event_log: EventLog,
    drain: Drain,
    settings: Settings,
    metrics: Metrics,
) -> Worker:
    worker = Worker(
        leasing,
        run_service,
        partial(event_log.bell_of, JOBS, ""),
        may_lease=lambda: not drain.begun.is_set(),
        settings=settings.async_run,
        metrics=metrics,
    )
    leasing.keeper.on_lost = worker.lost
    return worker


def _at_work(leasing: Leasing, worker: Worker, scheduler: Scheduler) -> list[asyncio.Task[None]]:
    return [
        asyncio.create_task(scheduler.run(), name="scheduler"),
        asyncio.create_task(leasing.keeper.watch(), name="keeper of leases"),
        asyncio.create_task(worker.run(), name="worker"),
    ]


def _idempotency(
    settings: Settings,
    pool: asyncpg.Pool,
    event_log: EventLog,
    runs: Runs,
    roster: Roster,
    duties: Duties,
    metrics: Metrics,
) -> tuple[Idempotency, Decisions]:
    """What answers requests with a key, and what operators decide of keys. The sweep becomes a duty."""

    def is_live(run_id: RunId) -> bool:
        return roster.find(run_id) is not None

    keys = Keys(event_log, settings.store.outage_patience)
    settling = Settling(
        keys, runs, forms(settings.server.prefix), continues=settings.run_continuation.enabled
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


def _gate(settings: Settings, app: AppDefinitions, circuits: Circuits, metrics: Metrics) -> Gate:
    limit = settings.model_concurrency.max_concurrent_calls_per_provider
    return Gate(
        circuits,
        Classifiers(
            app.classifiers, settings.chain.classifiers, retry_after_cap_s=settings.chain.retry_after_cap
        ),
        None if limit is None else Places(limit, metrics),
        ResponseCache(settings.response_cache),
    )


def _chain_link(providers: Mapping[str, ProviderSettings], link: Link) -> ChainLink:
    provider = providers[link.provider]
    known = provider.models.get(link.model)
    return ChainLink(
        link=link,
        supports_tools=provider.supports_tools(link.model),
        supports_prefill=known is not None and known.supports_prefill,
        context_window=known.context_window if known else None,
    )


def _prices(providers: Mapping[str, ProviderSettings]) -> dict[Link, Price]:
    return {
        Link(provider=name, model=model): known.price
        for name, provider in providers.items()
        for model, known in provider.models.items()
        if known.price is not None
    }


def _time_limits(settings: Settings) -> TimeLimits:
    chain = settings.chain
    return TimeLimits(
        connect_s=chain.connect_timeout, idle_s=chain.stream_idle_timeout, call_s=chain.call_timeout
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
