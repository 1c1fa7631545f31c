"""A host is killed with all its runs: how long it takes until each is closed, and goes on or says why not.

    python -m ops.bench orphans

Of ten runs, eight wait for their model in a session and are continued; one is paying, which nobody may do
twice, and one has no session: these are blocked. Times are those of the database's clock, from the moment at
which the surviving host took its first page of orphans. In the second row Postgres is restarted in the middle
of the closing. Both hosts, Postgres and this program share the machine.
"""

import asyncio
import itertools
import logging
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path

import asyncpg
import msgspec
import uvloop
from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector

from app.db.errors import StoreUnavailable
from app.db.pool import closing_pool, translated
from domain.events import Event, RunContinuationBlocked, RunContinued, RunFailed
from ops.bench.report import spread, table
from ops.bench.service import running
from ops.chaos.database import Database, database
from ops.chaos.evidence import Evidence, read_log
from ops.chaos.received import Received
from ops.chaos.trial import scratch

RUNS = 1000
THRESHOLD_S = 3.0
_SETTINGS = """
[run_reconciliation]
enabled = true
heartbeat_interval = "500ms"
orphan_threshold = "{threshold_s}s"
scan_interval = "500ms"
max_runs_per_scan = {page}
[run_continuation]
enabled = true
[turn]
timeout = "1h"
[providers.script]
type = "scripted"
[providers.script.models.thinking.default]
{thinking}
[providers.script.models.paying.default]
tool_call = {{ name = "pay" }}
[agents.thinking]
provider = "script"
model = "thinking"
[agents.paying]
provider = "script"
model = "paying"
tools = ["pay"]
"""
_KINDS = (*["thinking"] * 8, "paying", "alone")
_AT_A_TIME = 32

Running = AbstractContextManager[tuple[subprocess.Popen[str], str]]
"""A process, and its URL."""
_POLL_S = 0.01


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the runs, and when, counted from the first page."""

    closed_s: float
    decided_s: float
    ends: Counter[str]
    """How often each kind of event ended a run of the killed host."""
    verdicts: Counter[str]
    """`continued`, or the cause of a block."""
    completed: int
    """Runs that continue others and came to their ends."""
    all_closed_first: bool
    """Whether none went on before all were closed."""


def run(rounds: int = 2) -> None:
    """Measure in turns and print the table."""
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)  # our own pool meets the restart too
    rows = []
    for restarted in (False, True):
        found = [uvloop.run(measured(RUNS, restarted=restarted)) for _ in range(rounds)]
        rows.append(
            (
                "Postgres restarted meanwhile" if restarted else "undisturbed",
                spread([one.closed_s for one in found], ".2f"),
                spread([one.decided_s for one in found], ".2f"),
                ", ".join(sorted({_told(one) for one in found})),
            )
        )
    table(
        f"{RUNS} runs of a host that was killed: median (least..most) of {rounds} rounds",
        ("", "all closed, s", "all decided, s", "what became of them"),
        rows,
        "target: closed within 2 s",
    )


async def measured(runs: int, *, restarted: bool = False, page: int = 100) -> Outcome:
    """Two hosts, so many runs on one of them, and what the other makes of them when that one is killed."""
    kinds = [*itertools.islice(itertools.cycle(_KINDS), runs)]
    with scratch() as place:
        async with database(place / "postgres") as postgres, closing_pool(postgres.dsn) as pool:
            with ExitStack() as stack:
                victim, url = stack.enter_context(_host(place, "victim", "silent = true", postgres, page))
                async with _live(url, kinds, pool):
                    stack.enter_context(_host(place, "survivor", 'text = "There."', postgres, page))
                    victim.send_signal(signal.SIGKILL)
                    began = await _first_page(pool)
                    if restarted:
                        await postgres.restart()
                    return await _outcome(pool, kinds, began)


def _host(place: Path, name: str, thinking: str, postgres: Database, page: int) -> Running:
    config = place / f"{name}.toml"
    config.write_text(_SETTINGS.format(threshold_s=THRESHOLD_S, page=page, thinking=thinking))
    application = Path(__file__).with_name("paying.py")
    command = [sys.executable, "-m", "app", "serve", "--config", str(config), "--app", str(application)]
    options = ["--port", "0", "--dsn", postgres.dsn, "--log-level", "error"]
    return running(command + options, place / f"{name}.log")


@asynccontextmanager
async def _live(url: str, kinds: Sequence[str], pool: asyncpg.Pool) -> AsyncIterator[None]:
    """A run of each of these kinds, as far as it gets by itself, and watched."""
    gate, unlimited = asyncio.Semaphore(_AT_A_TIME), TCPConnector(limit=0)
    async with ClientSession(connector=unlimited, timeout=ClientTimeout(total=None)) as session:

        async def open_one(number: int, kind: str) -> ClientResponse:
            agent = "paying" if kind == "paying" else "thinking"
            body = {"message": "Go."} | ({} if kind == "alone" else {"session_id": f"s{number}"})
            async with gate:
                response = await session.post(f"{url}/tracon/api/agents/{agent}/run", json=body)
                response.raise_for_status()
                return response

        streams = await asyncio.gather(*(open_one(*one) for one in enumerate(kinds)))
        await _until(pool, "SELECT count(*) FROM run_heartbeats", len(kinds))
        await _until(pool, _recorded("tool.invoking.v1"), kinds.count("paying"))
        yield
        for stream in streams:
            stream.close()


async def _first_page(pool: asyncpg.Pool) -> datetime:
    while True:
        with suppress(StoreUnavailable), translated():
            began: datetime | None = await pool.fetchval(
                "SELECT min(claimed_at) FROM run_heartbeats WHERE claimed_by IS NOT NULL"
            )
            if began is not None:
                return began
        await asyncio.sleep(_POLL_S)


async def _until(pool: asyncpg.Pool, counted: str, enough: int) -> None:
    while True:
        with suppress(StoreUnavailable), translated():
            if await pool.fetchval(counted) >= enough:
                return
        await asyncio.sleep(_POLL_S)


def _recorded(*topics: str) -> str:
    named = ", ".join(f"'{topic}'" for topic in topics)
    return f"SELECT count(*) FROM stored_events WHERE topic IN ({named})"


async def _outcome(pool: asyncpg.Pool, kinds: Sequence[str], began: datetime) -> Outcome:
    await _until(pool, _recorded("run.continued.v1", "run.continuation-blocked.v1"), len(kinds))
    await _until(pool, _recorded("run.completed.v1"), kinds.count("thinking"))
    runs = [run for run in (Evidence(streams=await read_log(pool), received=Received()).runs).values()]
    left = [run for run in runs if run.created.continued_from_run_id is None]
    ends = [run.end for run in left if run.end]
    marks = [mark for run in left for mark in run.all(RunContinued, RunContinuationBlocked)]
    return Outcome(
        closed_s=(max(end.at for end in ends) - began).total_seconds(),
        decided_s=(max(mark.at for mark in marks) - began).total_seconds(),
        ends=Counter(_end_of(end.event) for end in ends),
        verdicts=Counter(_verdict_of(mark.event) for mark in marks),
        completed=sum(run.end is not None for run in runs) - len(ends),
        all_closed_first=max(end.recorded.position for end in ends)
        < min(mark.recorded.position for mark in marks),
    )


def _end_of(event: Event) -> str:
    return event.error_type if isinstance(event, RunFailed) else type(event).__name__


def _verdict_of(event: Event) -> str:
    return str(event.cause) if isinstance(event, RunContinuationBlocked) else "continued"


def _told(one: Outcome) -> str:
    verdicts = ", ".join(f"{count} {name}" for name, count in sorted(one.verdicts.items()))
    return f"{one.ends.total()} closed; {verdicts}; {one.completed} completed"
