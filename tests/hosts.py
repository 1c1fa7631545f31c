"""Whole hosts for tests: real settings, a real database, real HTTP, opened by the composition root."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import UnionType
from typing import TypeVar

import msgspec
import pytest

from app.application import AppDefinitions
from app.main import Host, HostOptions, open_host
from app.models.classifiers import Classifier
from app.settings.load import load_settings
from app.supervision.run_service import StartRequest
from app.tools.tool import Tool
from domain.agent import AgentDefinition
from domain.events import Event, Recorded, RunEnd
from domain.ids import DEFAULT_TENANT, RunId, run_stream
from domain.messages import UserMessage

E = TypeVar("E", bound=Event)

OpenHost = Callable[..., Awaitable[Host]]

ENDS = RunEnd


@pytest.fixture
async def host_of(database: str, tmp_path: Path) -> AsyncIterator[OpenHost]:
    """Open any number of hosts on the test's database, each from settings in TOML, until the test's end.

    A host that is to stop earlier is opened `within` an exit stack of the test's own.
    """
    async with AsyncExitStack() as stack:

        async def opened(
            toml: str,
            *,
            tools: tuple[Tool, ...] = (),
            agents: tuple[AgentDefinition, ...] = (),
            classifiers: tuple[Classifier, ...] = (),
            dsn: str = database,
            worker: bool = True,
            within: AsyncExitStack = stack,
        ) -> Host:
            file = tmp_path / "tracon.toml"
            file.write_text(toml)
            settings = load_settings(file, {"TRACON_DSN": dsn, "TRACON_SERVER__PORT": "0"})
            app = AppDefinitions(tools=tools, agents=agents, classifiers=classifiers)
            options = HostOptions(settings=settings, app=app, data_dir=tmp_path / "unused", worker=worker)
            return await within.enter_async_context(open_host(options))

        yield opened


def scripted(models: str, agents: str = "", more: str = "") -> str:
    """Settings with one scripted provider, `script`, tables of models and of agents."""
    return f'{more}\n[providers.script]\ntype = "scripted"\n{models}\n{agents}\n'


def chained(*links: str, agent: str = "", more: str = "") -> str:
    """Settings with a scripted provider for each link, `p1` and so on, and agent `a` bound to them in order.

    A link is what its model `m` does: lines of TOML.
    """
    providers = "".join(
        f'[providers.p{number}]\ntype = "scripted"\n[providers.p{number}.models.m]\n{link}\n'
        for number, link in enumerate(links, 1)
    )
    fallbacks = ", ".join(f'{{ provider = "p{number}", model = "m" }}' for number in range(2, len(links) + 1))
    bound = f'[agents.a]\nprovider = "p1"\nmodel = "m"\nfallbacks = [{fallbacks}]\n{agent}\n'
    return f"{more}\n{providers}\n{bound}"


async def start(host: Host, agent: str, text: str = "hello", **more: object) -> RunId:
    """Submit a message to an agent of the host."""
    request = StartRequest(tenant=DEFAULT_TENANT, agent=agent, messages=(UserMessage(content=text),))
    return await host.services.runs.start(msgspec.structs.replace(request, **more))


async def follow(
    host: Host, run_id: RunId, until: type[Event] | tuple[type[Event], ...] | UnionType = ENDS
) -> list[Recorded[Event]]:
    """The run's events up to the first of a kind, or up to its end."""
    seen: list[Recorded[Event]] = []
    async for batch in host.services.log.follow(run_stream(run_id), 0):
        seen += batch
        if any(isinstance(recorded.event, until) for recorded in batch):
            return seen
    raise AssertionError("a stream is followed for ever")


def kinds(recorded: list[Recorded[Event]]) -> list[str]:
    """The events' types, in order."""
    return [type(one.event).__name__ for one in recorded]


def only(recorded: list[Recorded[Event]], kind: type[E]) -> list[E]:
    return [one.event for one in recorded if isinstance(one.event, kind)]
