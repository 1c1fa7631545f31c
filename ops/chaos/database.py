"""The Postgres of a trial: a server of its own in the trial's folder, which may be restarted and killed."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg

from app.db import embedded, postmaster
from app.db.embedded import EmbeddedPostgres
from app.db.errors import StoreUnavailable
from app.db.pool import connect

_BACK_S = 30.0


class Database:
    """Its keeper starts it again however it ends."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self.dsn = server.dsn()
        """The straight way, past all links."""

    @property
    def socket_path(self) -> Path:
        arguments = self._server.connect_args()
        return Path(str(arguments["host"])) / f".s.PGSQL.{arguments['port']}"

    async def restart(self) -> None:
        """As an operator does it: connections are ended, what is under way is rolled back."""
        self._signal(signal.SIGINT)
        await self.answers()

    async def crash(self) -> None:
        """The server process dies; it recovers from its write-ahead log."""
        self._signal(signal.SIGKILL)
        await self.answers()

    async def crash_backend(self, chance: random.Random) -> None:
        """One connection's process dies, and Postgres ends all others for it."""
        connection = await connect(self.dsn)
        try:
            rows = await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                " AND pid <> pg_backend_pid() ORDER BY backend_start"
            )
        finally:
            connection.terminate()
        if rows:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(rows)["pid"], signal.SIGKILL)
        await self.answers()

    async def hold_appends(self, for_s: float) -> None:
        """Nothing can be appended meanwhile; everything can be read."""
        connection = await connect(self.dsn)
        try:
            async with connection.transaction():
                await connection.execute("LOCK TABLE stored_events IN EXCLUSIVE MODE")
                await asyncio.sleep(for_s)
        finally:
            connection.terminate()

    async def answers(self) -> None:
        """Wait until it takes connections."""
        async with asyncio.timeout(_BACK_S):
            while True:
                with suppress(StoreUnavailable, asyncpg.PostgresError):
                    connection = await connect(self.dsn)
                    connection.terminate()
                    return
                await asyncio.sleep(0.05)

    def _signal(self, what: signal.Signals) -> None:
        found = postmaster.find(self._server.data_dir / "cluster")
        if found:
            with suppress(ProcessLookupError):
                os.kill(found.pid, what)


@asynccontextmanager
async def database(folder: Path) -> AsyncIterator[Database]:
    """Up for as long as the block lasts."""
    server = await embedded.start(folder)
    try:
        yield Database(server)
    finally:
        await server.close()
