"""One heartbeat: a sign of life from the host's event loop, then one statement for all of its runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import asyncpg

from app.clock import elapsed_s
from app.db.errors import DatabaseError
from app.db.pool import translated
from app.faults import fault_point
from app.metrics import Metrics
from app.outage import Outage
from app.settings import RunReconciliationSettings
from app.supervision.presence import Presence, Roll
from app.supervision.sql import sql
from domain.ids import RunId

log = logging.getLogger(__name__)

Connect = Callable[[], Awaitable[asyncpg.Connection]]
TellHost = Callable[[Callable[[], object]], None]
"""Have the host's event loop call something, from the heartbeat's thread."""

_ANSWER_S = 1.0
_LONGEST_WRITE_S = 10.0
_FAREWELL_S = 2.0


class Pulse:
    """Lives in the heartbeat's thread. Whatever goes wrong is told here, and the next beat tries again."""

    def __init__(
        self,
        connect: Connect,
        host: str,
        presence: Presence,
        settings: RunReconciliationSettings,
        metrics: Metrics,
        tell_host: TellHost,
    ) -> None:
        self._connect = connect
        self._host = host
        self._presence = presence
        self._settings = settings
        self._metrics = metrics
        self._tell_host = tell_host
        self._connection: asyncpg.Connection | None = None
        self._answered_at = elapsed_s()
        self._loop_is_silent = False
        self._outage = Outage(log, "heartbeat")

    async def beat(self) -> None:
        """Write a heartbeat, unless the host's loop has been silent for so long that it may be dead."""
        await self._ask_the_loop()
        if not self._may_vouch():
            return
        roll, asked_at = self._presence.call_roll(), elapsed_s()
        try:
            async with asyncio.timeout(_LONGEST_WRITE_S):
                taken = await self._write(roll)
        except (DatabaseError, asyncpg.PostgresError, TimeoutError) as error:
            self._missed(error)
        else:
            self._outage.over()
            beaten = partial(self._presence.beaten, roll, taken, asked_at=asked_at, answered_at=elapsed_s())
            self._tell_host(beaten)

    async def farewell(self) -> None:
        """Give up what is still live. Nothing may be writing those runs any more."""
        cut_off = self._presence.call_roll().live if self._settings.enabled else ()
        try:
            async with asyncio.timeout(_FAREWELL_S):
                with translated():
                    await (await self._open()).execute(sql("farewell"), self._host, cut_off)
        except (DatabaseError, asyncpg.PostgresError, TimeoutError) as error:
            log.warning("heartbeat.no_farewell", extra={"error": str(error)})

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _ask_the_loop(self) -> None:
        """Wait a moment for the host's loop. An answer that comes later counts for the next beat."""
        here, answered = asyncio.get_running_loop(), asyncio.Event()

        def answer() -> None:
            self._answered_at = elapsed_s()
            with suppress(RuntimeError):  # this thread may have ended meanwhile
                here.call_soon_threadsafe(answered.set)

        self._tell_host(answer)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(_ANSWER_S, self._settings.heartbeat_interval)):
                await answered.wait()

    def _may_vouch(self) -> bool:
        silent_s = elapsed_s() - self._answered_at
        may = silent_s <= self._settings.orphan_threshold
        if not may and not self._loop_is_silent:
            log.error("heartbeat.loop_silent", extra={"silent_s": round(silent_s, 3)})
        self._loop_is_silent = not may
        return may

    async def _write(self, roll: Roll) -> set[RunId]:
        """Return the runs that are no longer this host's."""
        vouches = self._settings.enabled
        vouched_for = roll.live if vouches else ()
        fault_point("heartbeat.before")
        with translated():
            connection = await self._open()
            rows = await connection.fetch(
                sql("beat"), self._host, len(roll.live), vouched_for, roll.ended, vouches
            )
        fault_point("heartbeat.after")
        return {RunId(row["run_id"]) for row in rows}

    async def _open(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connect()
        return self._connection

    def _missed(self, error: Exception) -> None:
        self.hang_up()
        self._metrics.heartbeat_failures.inc()
        self._outage.met(error)
        self._tell_host(self._presence.missed)
