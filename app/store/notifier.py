"""Telling other hosts that there is something new."""

import asyncio
import logging

import asyncpg

from app.db.errors import StoreUnavailable
from app.db.pool import translated
from app.outage import Outage

log = logging.getLogger(__name__)

CHANNEL = "stored_events"
"""The channel that the `eventsourcing` library's own subscriptions listen on."""

_INTERVAL_S = 0.02


class Notifier:
    """Sends NOTIFY for what was committed since the last one, in a transaction of its own.

    Inside an append it would hold a lock of the whole server across the flush and queue up all commits
    behind it. A notification that is lost costs its listeners the wait for their next poll.
    """

    def __init__(self, pool: asyncpg.Pool, sender: str) -> None:
        self._pool = pool
        self._sender = sender
        self._due = asyncio.Event()
        self._outage = Outage(log, "notifications")

    def poke(self) -> None:
        self._due.set()

    async def run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                with translated():
                    await self._pool.execute("SELECT pg_notify($1, $2)", CHANNEL, self._sender)
            except (StoreUnavailable, asyncpg.PostgresError) as error:
                # A hint, no more. Besides an outage, the server's queue of notifications may be full.
                self._outage.met(error)
            else:
                self._outage.over()
            await asyncio.sleep(_INTERVAL_S)
