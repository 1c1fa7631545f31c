"""An upstream, and whole hosts in front of it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from app.models.http import HttpSession
from tests.supervision.walls import Wall, open_wall
from tests.upstream.server import Upstream

OpenWall = Callable[..., Awaitable[Wall]]


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream() as serving:
        yield serving


@pytest.fixture
async def http() -> AsyncIterator[HttpSession]:
    session = HttpSession()
    yield session
    await session.close()


@pytest.fixture
async def wall_of(database: str, tmp_path: Path, upstream: Upstream) -> AsyncIterator[OpenWall]:
    """Open hosts in front of the upstream."""
    async with AsyncExitStack() as stack:

        async def opened(**settings: Any) -> Wall:
            return await stack.enter_async_context(open_wall(database, tmp_path, upstream, **settings))

        yield opened
