"""Whole hosts on the test's own database, with scripted models, and clients that speak HTTP to them."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
import pytest_asyncio
from aiohttp import ClientSession

from app.application import AppDefinitions
from app.db.embedded import EmbeddedPostgres
from app.main import HostOptions, open_host
from app.settings.whole import Settings
from tests.conftest import TEMPLATE, cloned
from tests.http.client import Client
from tests.store.proxy import Proxy, proxied
from tracon import Agent, tool

T = TypeVar("T")


class Gate:
    """A tool that is held until the test lets it go, so that its run stays live for as long as that takes."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()
        self.is_deaf = False
        """Whether it goes on waiting when it is told to stop."""

    def as_tool(self) -> Any:
        @tool(name="gate", effect="read")
        async def gate() -> str:
            """Wait for the test."""
            self.reached.set()
            waiting = asyncio.ensure_future(self.let_go.wait())
            while not waiting.done():
                try:
                    await asyncio.shield(waiting)
                except asyncio.CancelledError:
                    if not self.is_deaf:
                        waiting.cancel()
                        raise
            return "through"

        return gate


PROVIDER = {
    "type": "scripted",
    "models": {
        "echo": {"input_per_million": "1", "output_per_million": "2"},
        "story": {"default": {"chunks": ["Once ", "upon ", "a ", "time."]}},
        "huge": {"default": {"chunks": ["x" * 60_000] * 120}},
        "gated": {"default": [{"tool_call": {"name": "gate"}}, {"last_tool_result": "It is {result}."}]},
        "asking": {"default": [{"tool_call": {"name": "sign"}}, {"last_tool_result": "It is {result}."}]},
        "lead": {
            "default": [
                {"tool_call": {"name": "helper", "arguments": {"message": "please"}}},
                {"last_tool_result": "It says: {result}"},
            ]
        },
        "failing": {"default": {"status": 500}},
        "rejecting": {"default": {"status": 400}},
        "filtered": {"default": {"content_filter": True}},
        "silent": {"default": {"silent": True}},
    },
}
AGENTS = tuple(PROVIDER["models"])  # each model has an agent of its name
TOOLS_OF = {"gated": ["gate"], "asking": ["sign"]}


@tool(effect="external", requires_approval=True)
async def sign() -> str:
    """Sign something."""
    return "signed"


class Hosts:
    """Opens hosts that share one database. `gate` is their one tool."""

    def __init__(self, stack: AsyncExitStack, dsn: str, directory: Path) -> None:
        self._stack = stack
        self._dsn = dsn
        self._directory = directory
        self.gate = Gate()

    @asynccontextmanager
    async def in_background(self, work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        """Work that goes on beside the test, and not after it."""
        task = asyncio.create_task(work)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def open(self, **sections: Any) -> Client:
        """`worker` and `api` say what the host does; all else is settings."""
        role = {name: sections.pop(name, True) for name in ("worker", "api")}
        settings = msgspec.convert(
            {
                "dsn": self._dsn,
                "server": {"port": 0, **sections.pop("server", {})},
                "providers": {"scripted": PROVIDER},
                **sections,
            },
            Settings,
        )
        agents = [
            Agent(name, provider="scripted", model=name, tools=TOOLS_OF.get(name, [])) for name in AGENTS
        ]
        app = AppDefinitions(
            tools=(self.gate.as_tool(), sign), agents=tuple(agent.definition for agent in agents)
        )
        opened = open_host(HostOptions(settings=settings, app=app, data_dir=self._directory, **role))
        host = await self._stack.enter_async_context(opened)
        session = await self._stack.enter_async_context(ClientSession(base_url=host.url))
        return Client(host, session)


@pytest.fixture
async def proxy(database: str, tmp_path: Path) -> AsyncIterator[Proxy]:
    """Another way to the same database, on which things go wrong when the test says so."""
    async with proxied(tmp_path, database) as opened:
        yield opened


@pytest.fixture
async def hosts(database: str, tmp_path: Path, proxy: Proxy) -> AsyncIterator[Hosts]:
    """The proxy outlives them: a host that closes still has something to say."""
    async with AsyncExitStack() as stack:
        hosts = Hosts(stack, database, tmp_path)
        yield hosts
        hosts.gate.let_go.set()
        proxy.let_go()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def same_host(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Client]:
    """One host for all tests of a module, which leave nothing in it that another would see."""
    async for dsn in cloned(postgres, TEMPLATE):
        async with AsyncExitStack() as stack:
            yield await Hosts(stack, dsn, tmp_path_factory.mktemp("host")).open()


@pytest.fixture
async def host(hosts: Hosts) -> Client:
    """One host with the settings that it has by itself."""
    return await hosts.open()
