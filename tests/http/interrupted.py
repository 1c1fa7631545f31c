"""Hosts that speak HTTP, on which a run was interrupted in the middle of a tool."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from aiohttp import ClientSession

from app.main import Host
from domain import events as e
from domain.ids import RunId
from tests.hosts import OpenHost, start
from tests.http.client import Client
from tests.supervision.crashing import World, close_orphan, die, settings

ClientOf = Callable[[Host], Awaitable[Client]]

LOOK = ("look", e.ToolEffect.READ, False)
REFUND = ("refund", e.ToolEffect.DESTRUCTIVE, False)
TOOLS = (LOOK, REFUND)
STEPS = ("look", "refund")


@pytest.fixture
async def client_of() -> AsyncIterator[ClientOf]:
    """A client of any host."""
    async with AsyncExitStack() as stack:

        async def opened(host: Host) -> Client:
            session = await stack.enter_async_context(ClientSession(base_url=host.url))
            return Client(host, session)

        yield opened


async def interrupted(
    host_of: OpenHost, client_of: ClientOf, *, session_id: str | None = "s"
) -> tuple[Client, RunId, World]:
    """A client of the host that has closed a run, whose own host died while it refunded."""
    world = World()
    world.held = ("first", "refund")
    host = await host_of(settings(STEPS), tools=world.tools("first", *TOOLS))
    other = await host_of(settings(STEPS), tools=world.tools("second", *TOOLS))
    run_id = await start(host, "a", session_id=session_id)
    await world.reached.wait()
    await die(host)
    await close_orphan(other, run_id)
    return await client_of(other), run_id, world


async def uncertain_call(client: Client, run_id: RunId) -> str:
    """The path of the one call of the run that nobody knows the end of."""
    calls = (await client.get(f"/tracon/api/runs/{run_id}/tools")).body["tool_calls"]
    [call] = [call for call in calls if call["state"] == "unknown"]
    return f"/tracon/api/runs/{run_id}/tools/{call['call_id']}"
