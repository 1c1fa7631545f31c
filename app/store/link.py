"""The writer's own connection, and whether the store is known to be down."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

import asyncpg

from app.db.errors import DatabaseError, StoreUnavailable

log = logging.getLogger(__name__)

Connect = Callable[[], Awaitable[asyncpg.Connection]]
"""Open a connection; raise StoreUnavailable or DatabaseUnusable."""

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


class Link:
    """One connection at a time.

    A connection that breaks is replaced at once. The store is down when none can be had, when it stays
    silent, or when it fails twice in a row; that ends with the next connection. `on_change` is called
    whenever the store goes down or comes back, `on_loss` when an open connection breaks.
    """

    def __init__(self, connect: Connect, on_change: Callable[[], None], on_loss: Callable[[], None]) -> None:
        self._connect = connect
        self._on_change = on_change
        self._on_loss = on_loss
        self._connection: asyncpg.Connection | None = None
        self._failures = 0
        self.down: StoreUnavailable | None = None
        """Why nothing can be written now, as far as is known."""

    async def connection(self) -> asyncpg.Connection:
        """An open connection, after as many attempts as it takes."""
        while self._connection is None or self._connection.is_closed():
            await asyncio.sleep(self._pause_s())
            try:
                self._connection = await self._connect()
            except (DatabaseError, asyncpg.PostgresError) as error:
                self._failures += 1
                self._become(_down(error))
            else:
                self._connection.add_termination_listener(lambda _: self._on_loss())
                self._become(None)
        return self._connection

    def failed(self, error: StoreUnavailable) -> None:
        """Give the connection up: it broke, or what it leads to cannot take a write."""
        self._failures += 1
        self.close()
        if self._failures > 1 or isinstance(error.__cause__, TimeoutError):
            self._become(_down(error))

    def answered(self) -> None:
        """The store gave a definite answer."""
        self._failures = 0

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def _become(self, down: StoreUnavailable | None) -> None:
        before, self.down = self.down, down
        if (before is None) is (down is None):
            return
        if down:
            log.error("store.down", extra={"error": str(down)})
        else:
            log.warning("store.back")
        self._on_change()

    def _pause_s(self) -> float:
        if self._failures < 2:
            return 0.0
        longest = min(_FIRST_PAUSE_S * 2.0 ** min(self._failures - 2, 10), _LONGEST_PAUSE_S)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - so that hosts do not come back in step


def _down(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(str(error), retry_after_s=_LONGEST_PAUSE_S)
