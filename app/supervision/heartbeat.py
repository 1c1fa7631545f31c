"""The heartbeat: says that this host and its live runs are there, from a thread of its own."""

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from app.metrics import Metrics
from app.settings import RunReconciliationSettings
from app.supervision.presence import Presence
from app.supervision.pulse import Connect, Pulse

log = logging.getLogger(__name__)


class Heartbeat:
    """`async with` it around everything that has runs. Which runs those are is in `presence`.

    The thread has an event loop and a connection of its own, so that a body which keeps the host's event loop
    or the interpreter busy does not make healthy runs look dead (RECON-2). The driver is the service's own,
    asyncpg: it lets go of the interpreter while it waits, which is all that a thread needs of it.

    With reconciliation off it says only that the host is here, which whoever cancels a run needs to know.
    """

    def __init__(
        self,
        connect: Connect,
        host: str,
        presence: Presence,
        settings: RunReconciliationSettings,
        metrics: Metrics,
    ) -> None:
        self._interval_s = settings.heartbeat_interval
        self._pulse = Pulse(connect, host, presence, settings, metrics, self._tell_host)
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._impatient: list[asyncio.Future[None]] = []
        self._stopping = False
        presence.beat = self.beat_now

    async def __aenter__(self) -> Self:
        """Return after the first attempt, so that a host that takes requests is known to the others."""
        self._host_loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        first = self._host_loop.create_future()
        self._impatient.append(first)
        self._thread.start()
        try:
            await first
        except BaseException:
            self._stopping = True
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say farewell: what is live until now is given up."""
        self._stopping = True
        self._hurry()
        await self._ended.wait()

    async def watch(self) -> None:
        """Return when the thread has ended. For the host, which must not go on without it."""
        await self._ended.wait()

    async def beat_now(self) -> None:
        """Return when it was tried to vouch for everything that is entered by now."""
        beaten = self._host_loop.create_future()
        self._impatient.append(beaten)
        self._hurry()
        await beaten

    def _hurry(self) -> None:
        with suppress(RuntimeError):  # its loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._due.set)

    def _tell_host(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the host's loop is closed: there is nobody to tell
            self._host_loop.call_soon_threadsafe(call)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat_until_stopped())
        except Exception:
            log.exception("heartbeat.crashed")
        finally:
            self._tell_host(self._end)

    async def _beat_until_stopped(self) -> None:
        self._loop, self._due = asyncio.get_running_loop(), asyncio.Event()
        try:
            while not self._stopping:
                self._due.clear()
                next_at = self._loop.time() + self._interval_s * random.uniform(0.85, 1)  # noqa: S311
                answered = partial(self._answer, len(self._impatient))
                await self._pulse.beat()
                self._tell_host(answered)
                await self._until(next_at)
            await self._pulse.farewell()
        finally:
            self._pulse.hang_up()

    async def _until(self, when: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(when):
                await self._due.wait()

    def _answer(self, waiting: int) -> None:
        for beaten in self._impatient[:waiting]:
            if not beaten.done():
                beaten.set_result(None)
        del self._impatient[:waiting]

    def _end(self) -> None:
        self._answer(len(self._impatient))
        self._ended.set()
