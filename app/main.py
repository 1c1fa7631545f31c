"""The composition root: it alone knows all parts, opens them in order and closes them in reverse."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.assembly.background import Background
from app.assembly.calls import calls_of, time_limits_of
from app.assembly.ground import definitions_of, open_ground, open_leasing
from app.assembly.services import services_of
from app.assembly.submissions import quotas_of, start_working
from app.assembly.supervision import core_of, workbench_of
from app.assembly.workflows import workflows_of
from app.http.application import bind, build_application, listen
from app.http.in_flight import IN_FLIGHT, InFlight
from app.http.services import Services
from app.http.watching import is_over
from app.jobs.leasing import Leasing
from app.jobs.triggers import triggers_of
from app.models.adapters import accounts_of
from app.models.http import HttpSession
from app.quotas.watch import QuotaBook
from app.registry import AppDefinitions
from app.settings.whole import Settings
from app.supervision.continuer import Continuer
from app.supervision.drain import Drain
from app.supervision.duties import Duties
from app.supervision.orphans import Orphans
from app.supervision.roster import Roster
from app.supervision.workbench import Workbench
from app.workflows.queued_runs import QueuedRuns
from domain.ids import RunId

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
    definitions, triggers = definitions_of(settings, options.app), triggers_of(settings.triggers)
    http = HttpSession(time_limits_of(settings))
    accounts = accounts_of(settings.providers, http)
    async with AsyncExitStack() as stack:
        background = Background(stack)
        stack.push_async_callback(http.close)
        listener = stack.enter_context(bind(settings.server))
        ground = await open_ground(settings, definitions, options.data_dir, stack, background)
        leasing = await open_leasing(ground, stack) if options.worker else None
        quotas, calls = quotas_of(ground), calls_of(ground, http, accounts)
        book = QuotaBook(quotas, ground.metrics)
        ground.log.on_committed.append(book.committed)
        background.start(book.run(), "quotas")
        core = core_of(ground, workbench_of(ground, calls, book), stack)
        workflows, recovery = workflows_of(ground, core, quotas)
        services = await services_of(ground, calls, core, quotas, workflows, triggers)
        stack.push_async_callback(services.idempotency.close)
        background.start(services.last_used.run(), "last use of keys")
        application = build_application(services, api=options.api)
        url = await stack.enter_async_context(listen(application, listener))
        background.start(ground.log.watch(), "event log")
        background.start(ground.heartbeat.watch(), "heartbeat")
        core.cancels.on_waiting = services.runs.withdraw
        background.start(core.cancels.receive(services.runs.cancel_here), "cancels")
        background.start(core.duties.run(core.drain.begun), "periodic duties")
        if leasing is not None:
            queued = QueuedRuns(services.runs, workflows, recovery)
            start_working(ground, leasing, queued, services.schedules, core.drain, background)
        yield Host(
            url=url,
            services=services,
            bench=core.bench,
            roster=core.roster,
            drain=core.drain,
            duties=core.duties,
            orphans=core.orphans,
            continuer=core.continuer,
            in_flight=application[IN_FLIGHT],
            leasing=leasing,
            parts=tuple(background.tasks),
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
