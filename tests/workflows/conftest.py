"""Hosts with workflows: scripted agents, functions that tests hold and count, and clients that speak HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession

from app.application import AppDefinitions
from app.functions.function import WorkflowFunction
from app.main import HostOptions, open_host
from app.settings.whole import Settings
from domain.workflow.definition import WorkflowDefinition
from tests.http.client import Client
from tracon import Agent, ToolContext, WorkflowContext, tool, workflow_function

PROVIDER = {
    "type": "scripted",
    "models": {
        "echo": {
            "default": {"echo": "echo of {message}"},
            "input_per_million": "1",
            "output_per_million": "2",
        },
        "yes": {"default": {"text": "yes"}},
        "desk": {"default": {"text": "Hard.\nHANDOFF: expert"}},
        "failing": {"default": {"status": 400}},
        "silent": {"default": {"silent": True}},
        "paying": {
            "default": [
                {"tool_call": {"name": "pay"}},
                {"tool_call": {"name": "gate"}},
                {"last_tool_result": "It is {result}."},
            ]
        },
        "gated": {"default": [{"tool_call": {"name": "gate"}}, {"last_tool_result": "It is {result}."}]},
    },
}
AGENTS = tuple(PROVIDER["models"])


class Held:
    """A function that is held until the test lets it go, and a tool that is."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()

    async def wait(self) -> str:
        self.reached.set()
        await self.let_go.wait()
        return "through"


class Workshop:
    """Hosts that share one database. `calls` are those of the functions `note` and `fail`, of all hosts."""

    def __init__(self, stack: AsyncExitStack, dsn: str, folder: Path) -> None:
        self._stack = stack
        self._dsn = dsn
        self._folder = folder
        self.held = Held()
        self.calls: list[WorkflowContext] = []
        self.given: list[str] = []
        self.paid: list[str] = []

    def functions(self) -> list[WorkflowFunction]:
        @workflow_function
        def note(text: str, context: WorkflowContext) -> str:
            self.calls.append(context)
            self.given.append(text)
            return f"noted {text}"

        @workflow_function
        async def hold(text: str) -> str:
            return await self.held.wait()

        @workflow_function
        def fail(text: str, context: WorkflowContext) -> str:
            self.calls.append(context)
            raise ValueError("not today")

        @workflow_function(attempts=3, delay="1ms")
        def flaky(text: str, context: WorkflowContext) -> str:
            self.calls.append(context)
            if context.attempt < 3:
                raise ConnectionError("try again")
            return "third time"

        @workflow_function(attempts=3, delay="1ms")
        def broken(text: str, context: WorkflowContext) -> str:
            self.calls.append(context)
            raise ValueError("never again")

        return [note, hold, fail, flaky, broken]

    async def open(
        self, *workflows: dict[str, Any], functions: tuple[Any, ...] = (), **sections: Any
    ) -> Client:
        """`worker` says what the host does; all else is settings."""
        worker = sections.pop("worker", True)
        settings = msgspec.convert(
            {
                "dsn": self._dsn,
                "server": {"port": 0},
                "providers": {"scripted": PROVIDER},
                **sections,
            },
            Settings,
        )

        @tool(effect="read")
        async def gate() -> str:
            """Wait for the test."""
            return await self.held.wait()

        @tool(effect="destructive")
        def pay(context: ToolContext) -> str:
            """Have an effect that must not be had twice."""
            self.paid.append(context.call_key)
            return "paid"

        tools = {"gated": ["gate"], "paying": ["pay", "gate"]}
        agents = [Agent(name, provider="scripted", model=name, tools=tools.get(name, [])) for name in AGENTS]
        app = AppDefinitions(
            tools=(gate, pay),
            agents=tuple(agent.definition for agent in agents),
            functions=(*self.functions(), *functions),
            workflows=tuple(msgspec.convert(one, WorkflowDefinition) for one in workflows),
        )
        opened = open_host(HostOptions(settings=settings, app=app, data_dir=self._folder, worker=worker))
        host = await self._stack.enter_async_context(opened)
        return Client(host, await self._stack.enter_async_context(ClientSession(base_url=host.url)))


@pytest.fixture
async def workshop(database: str, tmp_path: Path) -> AsyncIterator[Workshop]:
    async with AsyncExitStack() as stack:
        opened = Workshop(stack, database, tmp_path)
        yield opened
        opened.held.let_go.set()


def sequence(*nodes: dict[str, Any], name: str = "w") -> dict[str, Any]:
    return {"name": name, "kind": "sequential", "nodes": list(nodes)}


def agent(name: str, of: str = "echo", **more: Any) -> dict[str, Any]:
    return {"name": name, "agent": of, **more}


def function(name: str, of: str = "note", **more: Any) -> dict[str, Any]:
    return {"name": name, "function": of, **more}


def person(name: str, ask: str = "Is it good?", **more: Any) -> dict[str, Any]:
    return {"name": name, "ask": ask, **more}
