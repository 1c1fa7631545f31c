"""A host whose agents play every part that matters here, and OpenAI's own client of it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from aiohttp import ClientSession
from openai import AsyncOpenAI

from app.application import AppDefinitions
from app.db.embedded import EmbeddedPostgres
from app.main import HostOptions, open_host
from app.settings.whole import Settings
from tests.conftest import TEMPLATE, cloned
from tests.http.client import Client
from tests.http.conftest import Gate
from tracon import Agent, tool

_LOOK = {"tool_call": {"name": "look"}, "text": "Let me look."}
_LOOSE = {"text": "It is four degrees."}
_STRICT = {"text": '{"city": "Oslo", "degrees": 4}'}
_DEED = {"tool_call": {"name": "deed"}}

MODELS: dict[str, Any] = {
    "echo": {},
    "story": {"default": {"chunks": ["Once ", "upon ", "a ", "time."]}},
    "helper": {"default": [_LOOK, {"text": "It is raining."}]},
    "gated": {"default": [{"tool_call": {"name": "gate"}}, {"last_tool_result": "It is {result}."}]},
    "slow": {"default": {"text": "One two three four five six.", "delay": 0.06}},
    "weather": {"default": _STRICT},
    "corrected": {"script": [_LOOSE, _STRICT, _LOOSE, _STRICT]},
    "long": {"script": [{"length": "On and on"}, {"text": " it went."}] * 2},
    "endless": {"default": {"length": "On and on"}},
    "cut": {"default": {"chunks": ["This ", "will ", "not ", "end."], "cut_after": 2}},
    "failing": {"default": {"status": 500}},
    "rejecting": {"default": {"status": 400}},
    "denied": {"default": {"status": 401}},
    "filtered": {"default": {"content_filter": True}},
    "once-busy": {"script": [{"status": 503}], "default": {"text": "Here I am."}},
    "doer": {"default": [_DEED, {"status": 503}]},
    "reader": {"default": [{"tool_call": {"name": "look"}}, {"status": 503}]},
    "priced": {
        "default": [
            {**_LOOK, "usage": {"input_tokens": 10, "output_tokens": 4, "cached_input_tokens": 2}},
            {"text": "Rain.", "usage": {"input_tokens": 20, "output_tokens": 3, "reasoning_tokens": 1}},
        ]
    },
}
_TOOLS_OF = {"helper": ["look"], "priced": ["look"], "reader": ["look"], "doer": ["deed"], "gated": ["gate"]}


@tool(effect="read")
def look() -> str:
    """Look out of the window."""
    return "rain"


@tool(effect="external")
def deed() -> str:
    """Do what cannot be undone."""
    return "done"


class Service:
    """Hosts on one database, and what speaks to them."""

    def __init__(self, stack: AsyncExitStack, dsn: str, directory: Path) -> None:
        self._stack = stack
        self._dsn = dsn
        self._directory = directory
        self.gate = Gate()

    async def open(self, *, worker: bool = True, **sections: Any) -> "Host":
        settings = msgspec.convert(
            {
                "dsn": self._dsn,
                "server": {"port": 0, **sections.pop("server", {})},
                "circuit_breaker": {"enabled": False},
                "providers": {
                    "script": {"type": "scripted", "models": MODELS},
                    **sections.pop("providers", {}),
                },
                **sections,
            },
            Settings,
        )
        agents = [
            Agent(name, instructions="Answer.", provider="script", model=name, tools=_TOOLS_OF.get(name, []))
            for name in MODELS
        ]
        tools = (look, deed, self.gate.as_tool())
        app = AppDefinitions(tools=tools, agents=tuple(agent.definition for agent in agents))
        opened = open_host(HostOptions(settings=settings, app=app, data_dir=self._directory, worker=worker))
        host = await self._stack.enter_async_context(opened)
        session = await self._stack.enter_async_context(ClientSession(base_url=host.url))
        base_url = f"{host.url}/tracon/v1"
        ai = AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0, timeout=20)
        return Host(Client(host, session), await self._stack.enter_async_context(ai))


class Host:
    """One host: `ai` is OpenAI's client of it, `http` a plain one."""

    def __init__(self, http: Client, ai: AsyncOpenAI) -> None:
        self.http = http
        self.ai = ai

    async def events(self, run_id: str) -> list[dict[str, Any]]:
        return await self.http.events(run_id)

    async def runs(self) -> int:
        """How many runs there are."""
        await self.http.views_show("runs")
        listed = await self.http.get("/tracon/api/runs?with_total=true")
        return int(listed.body["total"])


@asynccontextmanager
async def opened(dsn: str, directory: Path) -> AsyncIterator[Service]:
    async with AsyncExitStack() as stack:
        service = Service(stack, dsn, directory)
        yield service
        service.gate.let_go.set()


@pytest_asyncio.fixture(loop_scope="module")
async def service(database: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with opened(database, tmp_path) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    """One host for all tests of a module, which leave nothing in it that another would see."""
    async for dsn in cloned(postgres, TEMPLATE):
        async with opened(dsn, tmp_path_factory.mktemp("host")) as one:
            yield await one.open()
