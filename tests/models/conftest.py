"""An upstream to call, and the HTTP client to call it with."""

from collections.abc import AsyncIterator

import pytest

from app.models.adapters import build
from app.models.http import HttpSession
from app.models.patience import TimeLimits
from app.models.port import ModelAdapter
from app.models.provider_settings import ProviderSettings
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


@pytest.fixture
async def chat(upstream: Upstream, http: HttpSession) -> ModelAdapter:
    settings = ProviderSettings(type="openai", base_url=f"{upstream.url}/v1", api_key_env="KEY")
    return build("primary", settings, http, {"KEY": KEY})


@pytest.fixture
async def other_chat(upstream: Upstream, http: HttpSession) -> ModelAdapter:
    """A second provider over the same client."""
    return build("backup", ProviderSettings(type="openai", base_url=f"{upstream.url}/v1"), http, {})
