"""One trial: everything is brought up, broken as the seed says, put right, and audited."""

import asyncio
import logging
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import msgspec
from aiohttp import ClientSession, TCPConnector

from app.assembly.stores import open_log
from app.db.pool import closing_pool
from app.settings.whole import Settings
from domain.event import topic_of
from ops.chaos import settings as trial_settings
from ops.chaos.client import Client
from ops.chaos.clock import Clock, library
from ops.chaos.database import Database, database
from ops.chaos.evidence import RUN_ENDS, Evidence, read_bodies, read_defects, read_log
from ops.chaos.host import Host
from ops.chaos.injector import Injector
from ops.chaos.link import Link
from ops.chaos.operator import Operator
from ops.chaos.oracle.audit import audit
from ops.chaos.oracle.views import jobs, views
from ops.chaos.received import Received, Violation
from ops.chaos.schedule import FaultKind, faults
from ops.chaos.settings import settling_s, thresholds_of
from ops.chaos.wall import Wall, wall
from ops.chaos.workload import Submission, submissions

log = logging.getLogger(__name__)

_POLL_S = 0.1
_QUIET_POLLS = 8
_LAST_WORD_S = 15.0
_MARGIN_S = 300.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial is: the same ones give the same faults and the same submissions."""

    seed: int
    seconds: float
    hosts: int
    per_second: float = 2.0
    gap_s: float = 2.5


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    options: Options
    injected: Counter[FaultKind]
    evidence: Evidence
    violations: Sequence[Violation]
    settled_s: float
    """How long it took, after the last fault, until every run had ended."""


class World:
    """Everything that a trial consists of, running."""

    def __init__(
        self,
        settings: Settings,
        hosts: Sequence[Host],
        database: Database,
        provider: Wall,
        pool: asyncpg.Pool,
    ) -> None:
        self.settings = settings
        self.hosts = hosts
        self.database = database
        self.wall = provider
        self.pool = pool
        self.received = Received()

    async def evidence(self, wanted: Iterable[Submission]) -> Evidence:
        """After the hosts have stopped."""
        deaths = [death for host in self.hosts for death in host.deaths]
        return Evidence(
            streams=await read_log(self.pool),
            bodies=read_bodies([host.tool_log for host in self.hosts]),
            calls=self.wall.log,
            received=self.received,
            submissions={submission.number: submission for submission in wanted},
            callers={pid: key for host in self.hosts for pid, key in host.pids.items()},
            defects=[*deaths, *read_defects([host.log for host in self.hosts])],
        )


async def run(options: Options, folder: Path | None = None) -> Outcome:
    """Bounded in time; nothing that it started is left running. `folder` keeps what was written."""
    with scratch(folder) as place:
        async with world(options.hosts, place) as built:
            async with asyncio.timeout(options.seconds + settling_s(built.settings) + _MARGIN_S):
                for host in built.hosts:
                    await host.bring_up()
                return await _run(options, built)


async def _run(options: Options, built: World) -> Outcome:
    wanted = submissions(options.seed, options.seconds, options.hosts, per_second=options.per_second)
    schedule = faults(
        options.seed,
        options.seconds,
        options.hosts,
        thresholds_of(built.settings),
        gap_s=options.gap_s,
    )
    injector = Injector(built.hosts, built.database, built.wall, options.seed)
    async with (
        ClientSession(connector=TCPConnector(limit=0, force_close=True)) as session,
        asyncio.TaskGroup() as tasks,
    ):
        over = asyncio.Event()
        clients = tasks.create_task(_clients(wanted, built, session, over))
        operator = Operator(built.hosts, session, built.received, options.seed)
        operating = tasks.create_task(operator.run())
        await asyncio.gather(injector.follow(schedule), asyncio.sleep(options.seconds))
        await asyncio.gather(*(host.bring_up() for host in built.hosts if not host.up))
        put_right = time.monotonic()
        await _until_settled(built)
        settled_s = time.monotonic() - put_right
        operating.cancel()
        await operator.look()
        await _until_settled(built)
        over.set()
        await _last_word(clients)
    await stop(built.hosts)
    evidence = await built.evidence(wanted)
    violations = audit(evidence)
    async with open_log(built.database.dsn, built.settings.store) as event_log:
        violations += [violation async for violation in views(built.pool, event_log)]
        violations += [violation async for violation in jobs(built.pool)]
    return Outcome(
        options=options,
        injected=injector.injected,
        evidence=evidence,
        violations=violations,
        settled_s=settled_s,
    )


@asynccontextmanager
async def world(hosts: int, folder: Path, *, orphan_s: float = 2.5) -> AsyncIterator[World]:
    """All parts up but the hosts, which are closed in the end, by force if need be."""
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(database(folder / "postgres"))
        provider = await stack.enter_async_context(wall())
        config = trial_settings.write(folder, provider.url, orphan_s=orphan_s)
        settings = trial_settings.read(config)
        preloaded = await asyncio.to_thread(library, folder)
        if preloaded is None:
            log.warning("no C compiler here: no host's time of day will be wrong")
        places = [
            await _place(
                stack, number, folder, config, postgres, Clock(folder / f"clock-{number}", preloaded)
            )
            for number in range(hosts)
        ]
        pool = await stack.enter_async_context(closing_pool(postgres.dsn))
        yield World(settings, places, postgres, provider, pool)


async def _place(
    stack: AsyncExitStack, number: int, folder: Path, config: Path, postgres: Database, clock: Clock
) -> Host:
    link = Link(postgres.socket_path)
    await link.start()
    stack.push_async_callback(link.close)
    host = Host(number, folder, config, link, clock)
    stack.push_async_callback(host.close)
    return host


async def _clients(
    wanted: Sequence[Submission], built: World, session: ClientSession, over: asyncio.Event
) -> None:
    """Each comes at its time."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.TaskGroup() as tasks:
        for submission in wanted:
            await asyncio.sleep(began + submission.at_s - loop.time())
            tasks.create_task(Client(submission, built.hosts, session, built.received, over).run())


async def _until_settled(built: World) -> None:
    """Until every run has ended, or until that should long have been so."""
    try:
        async with asyncio.timeout(settling_s(built.settings)):
            await no_open_runs(built)
    except TimeoutError:
        log.warning("not settled in time")


async def _last_word(clients: asyncio.Task[None]) -> None:
    """Until every client has learnt what became of its run."""
    try:
        async with asyncio.timeout(_LAST_WORD_S):
            await asyncio.wait({clients})
    except TimeoutError:
        log.warning("some clients never heard of their runs' ends")
        clients.cancel()


async def no_open_runs(built: World) -> None:
    """Return when there have been none for a while: between a run's end and its continuation is a moment."""
    quiet = 0
    while quiet < _QUIET_POLLS:
        quiet = quiet + 1 if await _open_runs(built) == 0 else 0
        await asyncio.sleep(_POLL_S)


async def _open_runs(built: World) -> int:
    open_runs: int = await built.pool.fetchval(
        "SELECT count(*) FROM stored_events AS created WHERE topic = 'run.created.v1' AND NOT EXISTS ("
        " SELECT FROM stored_events AS ended WHERE ended.originator_id = created.originator_id"
        " AND ended.topic = ANY ($1))",
        [topic_of(end) for end in RUN_ENDS],
    )
    return open_runs


@contextmanager
def scratch(folder: Path | None = None) -> Iterator[Path]:
    """This folder, or one that is gone afterwards."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="tracon-chaos-") as made:
        Path(made).chmod(0o755)  # Postgres runs as another user when we are root
        yield Path(made)


async def stop(hosts: Sequence[Host]) -> None:
    """Those that are up, in good order: that too is to work after all this."""
    up = [host for host in hosts if host.up]
    for status, host in zip(await asyncio.gather(*(host.stop() for host in up)), up, strict=True):
        if status != 0:
            host.deaths.append(f"host {host.number} stopped with status {status}")
