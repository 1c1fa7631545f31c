"""A kill at every await of a workflow: an agent, a function, a pair at once, a person, and what follows."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import asyncpg
import msgspec
from aiohttp import ClientError, ClientSession
from rich.console import Console
from rich.table import Table

from app.db.pool import closing_pool
from app.faults import FaultPoint
from ops.chaos.clock import Clock
from ops.chaos.database import Database, database
from ops.chaos.host import Host
from ops.chaos.link import Link
from ops.chaos.oracle.workflows import Chain, chain_of, wrong_with
from ops.chaos.trial import scratch

POINTS: tuple[str, ...] = tuple(
    point for point in get_args(FaultPoint) if not point.startswith(("approval", "tool"))
)
_PERIODIC = {"heartbeat.before": 2, "heartbeat.after": 2, "lease.renew.before": 1, "lease.renew.after": 1}
"""Points that a host passes for ever, and how many times of them are rehearsed."""
_APPLICATION = Path(__file__).with_name("workflow_app.py")
_ASKING_S = 0.05
_STORY_S = 60.0
_LAST_BREATH_S = 0.5

_TOML = """
[run_reconciliation]
enabled = true
heartbeat_interval = "150ms"
orphan_threshold = "1s"
scan_interval = "250ms"
[async_run]
lease_duration = "3s"
poll_interval = "200ms"
[workflows]
resume_interrupted_runs = true
max_resume_attempts = 3
[providers.script]
type = "scripted"
[providers.script.models.finder.default]
chunks = ["three", " apples"]
delay = "{pace_ms}ms"
[providers.script.models.taster.default]
echo = "tasted {{message}}"
[agents.finder]
provider = "script"
model = "finder"
[agents.taster]
provider = "script"
model = "taster"
[workflow_definitions.killed]
kind = "sequential"
nodes = [
  {{ name = "find", agent = "finder" }},
  {{ name = "weigh", function = "weigh" }},
  {{ name = "pair", together = [
      {{ name = "taste", agent = "taster" }},
      {{ name = "count", function = "count" }},
  ] }},
  {{ name = "approve", ask = "Good? {{{{ taste }}}} {{{{ count }}}}" }},
  {{ name = "publish", function = "publish" }},
]
"""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """One kill, and what came of the workflow that it happened to."""

    point: str
    nth: int
    outcome: str
    invoked: Counter[str]
    """How often each node was invoked, over all runs of the chain."""
    violations: tuple[str, ...]


class Teller:
    """A client that has the workflow run and answers for its person, on whichever host is up."""

    def __init__(self, hosts: Sequence[Host], session: ClientSession, key: str) -> None:
        self._hosts = hosts
        self._session = session
        self._key = key
        self.asked: list[str] = []
        """Requests that were listed after they had been answered."""

    async def tell(self) -> list[str]:
        """The ids of the chain's runs, once its last one has ended for good."""
        run_id = (await self._post("killed/run", {"message": "apples"}, f"{self._key}-run"))["id"]
        chain = [run_id]
        while True:
            run = await self._get(f"runs/{chain[-1]}")
            if run["continued_by_run_id"]:
                chain.append(run["continued_by_run_id"])
            elif run["status"] == "AwaitingInput":
                await self._respond(chain[-1])
            elif run["status"] not in ("Queued", "Running") and run["error_type"] != "orphaned":
                return chain  # an orphan is closed first, and gone on from a moment later
            else:
                await asyncio.sleep(_ASKING_S)

    async def _respond(self, run_id: str) -> None:
        answer = {"answer": "yes"}
        await self._post(f"runs/{run_id}/respond", answer, f"{self._key}-{run_id}")
        listed = await self._get(f"workflows/runs/{run_id}/requests")
        self.asked += [request["id"] for request in listed["requests"]]

    async def _post(self, path: str, body: Any, key: str) -> Any:
        headers = {"Prefer": "respond-async", "Idempotency-Key": key}
        return await self._until_answered("POST", f"workflows/{path}", json=body, headers=headers)

    async def _get(self, path: str) -> Any:
        return await self._until_answered("GET", path, headers={"Accept": "application/json"})

    async def _until_answered(self, method: str, path: str, **more: Any) -> Any:
        """Sent again with the same key until somebody answers: then it has happened once."""
        while True:
            for url in [host.url for host in self._hosts if host.url]:
                try:
                    async with self._session.request(method, f"{url}/tracon/api/{path}", **more) as answer:
                        if answer.status < 300:
                            return await answer.json()
                except (ClientError, TimeoutError, ConnectionError):
                    continue
            await asyncio.sleep(_ASKING_S)


class Stage:
    """A host that dies, and one that is started afterwards and goes on with what it left behind."""

    def __init__(self, victim: Host, survivor: Host, pool: asyncpg.Pool, session: ClientSession) -> None:
        self._victim = victim
        self._survivor = survivor
        self._pool = pool
        self._session = session
        self.rehearsed: list[Rehearsal] = []

    async def rehearse(self, point: str, nths: Sequence[int]) -> None:
        """The point's kills, one after the other, until it is passed no more."""
        for nth in nths or range(1, _PERIODIC.get(point, 1000) + 1):
            if not await self._kill(point, nth):
                return

    async def _kill(self, point: str, nth: int) -> bool:
        """Whether the host died there. If not, it does not pass there so often in one workflow."""
        key = f"{point}-{nth}"
        await self._victim.start(fault=f"{point}:{nth}")
        ended = asyncio.create_task(self._victim.ended())
        teller = Teller((self._victim, self._survivor), self._session, key)
        telling = asyncio.create_task(teller.tell())
        # Heartbeats go on for ever; a lease ends with its workflow, and is renewed no more.
        until = {ended} if point.startswith("heartbeat") else {ended, telling}
        await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
        died = bool((await asyncio.wait({ended}, timeout=_LAST_BREATH_S))[0])
        if not died:
            await self._victim.stop()
        await self._survivor.bring_up()
        async with asyncio.timeout(_STORY_S):
            runs = await telling
        await ended
        await self._survivor.stop()
        if died:
            self.rehearsed.append(await self._judged(point, nth, runs, teller))
        return died

    async def _judged(self, point: str, nth: int, runs: Sequence[str], teller: Teller) -> Rehearsal:
        bodies = _bodies((self._victim.tool_log, self._survivor.tool_log), runs)
        chain: Chain = await chain_of(self._pool, runs)
        violations = [*wrong_with(chain, bodies)]
        violations += [f"request {request} is listed although it was answered" for request in teller.asked]
        return Rehearsal(
            point=point,
            nth=nth,
            outcome=" > ".join(chain.outcomes),
            invoked=chain.invoked,
            violations=tuple(violations),
        )


def _bodies(logs: Sequence[Path], runs: Sequence[str]) -> list[dict[str, Any]]:
    lines = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
    return [body for body in map(json.loads, lines) if body["run_id"] in runs]


async def run(
    points: Sequence[str] = POINTS, nths: Sequence[int] = (), *, pace_ms: int = 500
) -> list[Rehearsal]:
    """Rehearse every kill, or the nth ones at these points, and judge what came of each.

    `pace_ms` is between two words of an agent: a workflow must last until its lease is renewed.
    """
    with scratch() as folder:
        async with _stage(folder, pace_ms) as stage:
            for point in points:
                await stage.rehearse(point, nths)
            return stage.rehearsed


@asynccontextmanager
async def _stage(folder: Path, pace_ms: int) -> AsyncIterator[Stage]:
    config = folder / "tracon.toml"
    config.write_text(_TOML.format(pace_ms=pace_ms))
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(database(folder / "postgres"))
        victim = await _host(stack, 0, folder, config, postgres)
        survivor = await _host(stack, 1, folder, config, postgres)
        pool = await stack.enter_async_context(closing_pool(postgres.dsn))
        session = await stack.enter_async_context(ClientSession())
        yield Stage(victim, survivor, pool, session)


async def _host(stack: AsyncExitStack, number: int, folder: Path, config: Path, postgres: Database) -> Host:
    link = Link(postgres.socket_path)
    await link.start()
    stack.push_async_callback(link.close)
    clock = Clock(folder / f"clock-{number}", None)
    host = Host(number, folder, config, link, clock, _APPLICATION)
    stack.push_async_callback(host.close)
    return host


def show(rehearsed: Sequence[Rehearsal], console: Console) -> None:
    """A row for each kill: how often each node was invoked, and whether all promises were kept."""
    nodes = ("find", "weigh", "taste", "count", "approve", "publish")
    table = Table(title="A kill at every await of a workflow", title_justify="left")
    for column in ("point", "time", "what came of its runs", *nodes, ""):
        table.add_column(column, justify="right" if column in nodes else "left")
    for one in rehearsed:
        mark = "[bold red]wrong[/]" if one.violations else "[green]holds[/]"
        counts = (str(one.invoked[node]) for node in nodes)
        table.add_row(one.point, str(one.nth), one.outcome, *counts, mark)
    console.print(table)
    for one in rehearsed:
        for violation in one.violations:
            console.print(f"[bold red]{one.point}:{one.nth}[/]: {violation}")
