"""The keeper of leases: renews those of this host, from a thread of its own."""

import asyncio
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Self

import asyncpg

from app.clock import elapsed_s
from app.db.errors import DatabaseError
from app.db.pool import translated
from app.faults import fault_point
from app.jobs.lease import HeldLeases
from app.jobs.sql import sql
from app.outage import Outage
from domain.ids import RunId

log = logging.getLogger(__name__)

Connect = Callable[[], Awaitable[asyncpg.Connection]]

_RENEWED_AT = 1 / 3
_LONGEST_WRITE_S = 10.0
_TRY_AGAIN_S = 1.0


class LeaseKeeper:
    """`async with` it around a worker. All leases are renewed together, when a third of their time is over.

    The thread has an event loop and a connection of its own, so that a body which keeps the host's event loop
    busy costs no lease. A loop that has answered nothing for `silence_s` is not vouched for any longer.
    """

    def __init__(
        self,
        connect: Connect,
        leases: HeldLeases,
        *,
        silence_s: float,
    ) -> None:
        self._connect = connect
        self._leases = leases
        self.on_lost: Callable[[Sequence[RunId]], None] = lambda _: None
        """Told, in the host's event loop, of leases that are somebody else's by now."""
        self._silence_s = silence_s
        self._period_s = leases.duration_s * _RENEWED_AT
        self._connection: asyncpg.Connection | None = None
        self._answered_at = elapsed_s()
        self._outage = Outage(log, "job leases")
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="lease keeper", daemon=True)

    async def __aenter__(self) -> Self:
        self._host_loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        started = asyncio.Event()
        self._started = started.set
        self._thread.start()
        await started.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        self.hurry()
        await self._ended.wait()

    async def watch(self) -> None:
        """Return when the thread has ended. For the host, which must not go on without it."""
        await self._ended.wait()

    def hurry(self) -> None:
        """Have it renew now."""
        with suppress(RuntimeError):  # its loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._due.set)

    def _run(self) -> None:
        try:
            asyncio.run(self._keep())
        except Exception:
            log.exception("keeper.crashed")
        finally:
            self._tell_host(self._ended.set)

    async def _keep(self) -> None:
        self._loop, self._due = asyncio.get_running_loop(), asyncio.Event()
        self._tell_host(self._started)
        try:
            while not self._stopping:
                self._due.clear()
                period_s = self._period_s if await self._renew() else min(_TRY_AGAIN_S, self._period_s)
                with suppress(TimeoutError):
                    async with asyncio.timeout(period_s * random.uniform(0.85, 1)):  # noqa: S311
                        await self._due.wait()
        finally:
            self._hang_up()

    async def _renew(self) -> bool:
        """One round. Return False where it did not come to pass."""
        self._tell_host(self._answer)
        held = self._leases.all()
        if not held:
            return True
        if elapsed_s() - self._answered_at > self._silence_s:
            log.error("keeper.loop_silent", extra={"leases": len(held)})
            return False
        asked_at = elapsed_s()
        try:
            async with asyncio.timeout(_LONGEST_WRITE_S):
                kept = await self._write(list(held), [one.term for one in held.values()])
        except (DatabaseError, asyncpg.PostgresError, TimeoutError) as error:
            self._missed(error)
            return False
        self._outage.over()
        if lost := self._leases.renewed(held, kept, asked_at):
            self._tell_host(partial(self._lost, lost))
        return True

    async def _write(self, run_ids: list[RunId], terms: list[int]) -> set[RunId]:
        fault_point("lease.renew.before")
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connect()
        with translated():
            rows = await self._connection.fetch(
                sql("renew"), run_ids, terms, timedelta(seconds=self._leases.duration_s)
            )
        fault_point("lease.renew.after")
        return {RunId(row["run_id"]) for row in rows}

    def _lost(self, run_ids: Sequence[RunId]) -> None:
        self.on_lost(run_ids)

    def _answer(self) -> None:
        self._answered_at = elapsed_s()

    def _tell_host(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the host's loop is closed: there is nobody to tell
            self._host_loop.call_soon_threadsafe(call)

    def _missed(self, error: Exception) -> None:
        self._hang_up()
        self._outage.met(error)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
