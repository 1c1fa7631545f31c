"""Whole hosts whose providers are the upstream of the tests: real HTTP on both sides."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import ClientSession, TCPConnector

from app.application import AppDefinitions
from app.main import Host, HostOptions, open_host
from app.models.provider_settings import ProviderType
from app.settings.whole import Settings
from app.tools.tool import Tool
from domain.agent import AgentDefinition
from tests.http.client import Client
from tests.upstream.attempts import Attempt
from tests.upstream.server import Upstream

FAMILIES: dict[str, ProviderType] = {
    "chat": "openai",
    "responses": "openai_responses",
    "messages": "anthropic",
    "gemini": "google",
}
"""Each wire of the upstream, and a type of provider that speaks it."""
NAME = "X-Provider"


def provider(family: str, upstream: Upstream, name: str, **more: Any) -> dict[str, Any]:
    """The settings of a provider at the upstream, which tells its attempts by the name."""
    kind = FAMILIES[family]
    base_url = f"{upstream.url}/v1" if kind.startswith("openai") else upstream.url
    return {"type": kind, "base_url": base_url, "headers": {NAME: name}, **more}


@dataclass(frozen=True)
class Wall:
    """A host, a client that speaks HTTP to it, and the upstream that saw every attempt of its own."""

    host: Host
    client: Client
    upstream: Upstream

    def attempts(self, name: str, model: str) -> list[Attempt]:
        """What the upstream saw of the provider `name`, as it counted itself."""
        return [a for a in self.upstream.log.of(model) if a.headers.get(NAME) == name]


@asynccontextmanager
async def open_wall(
    dsn: str,
    directory: Path,
    upstream: Upstream,
    *,
    providers: Mapping[str, Any],
    agents: tuple[AgentDefinition, ...],
    tools: tuple[Tool, ...] = (),
    **sections: Any,
) -> AsyncIterator[Wall]:
    settings = msgspec.convert(
        {"dsn": dsn, "server": {"port": 0}, "providers": dict(providers), **sections}, Settings
    )
    app = AppDefinitions(tools=tools, agents=agents)
    async with AsyncExitStack() as stack:
        opened = open_host(HostOptions(settings=settings, app=app, data_dir=directory))
        host = await stack.enter_async_context(opened)
        connector = TCPConnector(limit=0)
        session = await stack.enter_async_context(ClientSession(base_url=host.url, connector=connector))
        yield Wall(host, Client(host, session), upstream)
