"""Views to read, folded from whatever facts a test wants."""

from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from projections.base import Fact
from projections.catalog import PROJECTIONS

Show = Callable[[list[Fact]], Awaitable[None]]


@pytest.fixture
def show(pool: asyncpg.Pool) -> Show:
    """Fold these facts into every view."""

    async def fold(facts: list[Fact]) -> None:
        async with pool.acquire() as conn, conn.transaction():
            for projection in PROJECTIONS:
                await projection.apply(conn, facts)

    return fold
