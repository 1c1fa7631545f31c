"""A pool between whose query and answer a test may put something."""

from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg


class Interrupted:
    """A pool after whose next query something happens, before the reader sees the answer."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self.then: Callable[[], Awaitable[None]] | None = None

    async def fetch(self, *query: Any) -> list[asyncpg.Record]:
        rows = await self._pool.fetch(*query)
        await self._interrupt()
        return rows

    async def fetchval(self, *query: Any) -> Any:
        value = await self._pool.fetchval(*query)
        await self._interrupt()
        return value

    async def _interrupt(self) -> None:
        then, self.then = self.then, None
        if then:
            await then()
