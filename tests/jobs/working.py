"""Hosts whose models answer at once or wait for the test, and what a test asks about jobs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from app.main import Host
from domain.events import Event, Recorded
from domain.ids import RunId, run_stream
from domain.queueing import QueueSpec
from tests.hosts import scripted, start
from tracon import tool

QUEUE = QueueSpec()

_ECHO = """
[providers.script.models.echo]
[agents.echo]
provider = "script"
model = "echo"
"""
_GATED = """
[providers.script.models.gated]
supports_tools = true
default = [{ tool_call = { name = "gate" } }, { text = "through" }]
[agents.gated]
provider = "script"
model = "gated"
tools = ["gate"]
"""


def settings(*, gated: bool = False, more: str = "", **async_run: object) -> str:
    """An agent that answers at once, and with `gated` one whose tool waits for the test."""
    section = "\n".join(f"{name} = {_toml(value)}" for name, value in async_run.items())
    return scripted(_ECHO, _GATED if gated else "", f"{more}\n[async_run]\n{section}")


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + " }"
    return f'"{value}"' if isinstance(value, str) else str(value)


class Gate:
    """A tool that says when it is reached and waits until it is let go."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()
        self.stopped = asyncio.Event()
        self.calls = 0
        self.tool = tool(name="gate", effect="read")(self._pass)

    async def _pass(self) -> str:
        """Wait for the test."""
        self.calls += 1
        self.reached.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return "open"


async def queued(host: Host, agent: str = "echo", **queue: object) -> RunId:
    """Leave a run to the workers."""
    spec = QueueSpec(**queue)  # type: ignore[arg-type]
    return await start(host, agent, queue=spec)


async def events(host: Host, run_id: RunId) -> list[Recorded[Event]]:
    """All that there is of the run by now."""
    return await host.services.log.read_stream(run_stream(run_id))


async def shown(host: Host, view: str = "jobs") -> None:
    """Return when the view shows everything that is recorded by now."""
    await host.services.views.wait_for(view, await host.services.log.end_position(), timeout_s=10)


async def run_out(pool: asyncpg.Pool) -> None:
    """As if the time of every lease were over, and everybody heard of it."""
    await pool.execute("UPDATE job_queue SET leased_until = clock_timestamp() WHERE owner IS NOT NULL")
    await pool.execute("SELECT pg_notify('tracon_jobs', '')")


@asynccontextmanager
async def within(seconds: float = 10.0) -> AsyncIterator[None]:
    async with asyncio.timeout(seconds):
        yield


async def until_row(pool: asyncpg.Pool, query: str, *arguments: object) -> None:
    """Look until the query finds something."""
    async with within():
        while not await pool.fetch(query, *arguments):
            await asyncio.sleep(0.005)
