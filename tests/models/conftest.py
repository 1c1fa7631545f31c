"""An upstream to call, and the HTTP client to call it with."""

from collections.abc import AsyncIterator

import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.http import HttpSession
from app.models.patience import TimeLimits
from app.models.port import ModelAdapter
from app.models.provider_settings import ProviderSettings, ProviderType
from tests.upstream.server import Upstream

KEY = "sk-secret-of-the-tests"
LIMITS = TimeLimits(connect_s=2.0, idle_s=0.25, tail_s=0.1, call_s=20.0)


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream() as serving:
        yield serving


@pytest.fixture
async def http() -> AsyncIterator[HttpSession]:
    session = HttpSession(LIMITS)
    yield session
    await session.close()


WIRES: dict[str, ProviderType] = {
    "chat": "openai",
    "responses": "openai_responses",
    "messages": "anthropic",
    "gemini": "google",
}
"""The wires behind HTTP, and a type of provider that speaks each."""


def adapter_of(kind: ProviderType, url: str, http: HttpSession, name: str = "primary") -> ModelAdapter:
    """An adapter for the upstream at this address, with a key."""
    base_url = f"{url}/v1" if kind.startswith("openai") else url
    settings = ProviderSettings(type=kind, base_url=base_url, api_key_env="KEY")
    return build(Account(name), settings, http, {"KEY": KEY})


@pytest.fixture
async def chat(upstream: Upstream, http: HttpSession) -> ModelAdapter:
    return adapter_of("openai", upstream.url, http)


@pytest.fixture(params=WIRES)
async def adapter(request: pytest.FixtureRequest, upstream: Upstream, http: HttpSession) -> ModelAdapter:
    """One adapter per wire."""
    return adapter_of(WIRES[request.param], upstream.url, http)


@pytest.fixture
async def other_chat(upstream: Upstream, http: HttpSession) -> ModelAdapter:
    """A second provider over the same client."""
    return build(Account("backup"), ProviderSettings(type="openai", base_url=f"{upstream.url}/v1"), http, {})
