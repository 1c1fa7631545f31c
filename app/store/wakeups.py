"""Waking whoever waits for news: by LISTEN where it can be had, by their own polling where not."""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain

import asyncpg

from app.db.errors import DatabaseError
from app.db.pool import translated
from app.outage import Outage
from app.store.link import Connect
from app.store.notifier import CHANNEL

log = logging.getLogger(__name__)

POLL_S = 1.0
"""How long news may go unnoticed when no notification arrives."""

_PROBE_S = 20.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class Bell:
    """Rings when there may be news. Silence it before looking, so that what comes meanwhile is not missed."""

    __slots__ = ("_rung",)

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    def silence(self) -> None:
        self._rung.clear()

    async def wait(self, at_most_s: float) -> None:
        """Until it rings, or about that long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s * random.uniform(0.9, 1.1)):  # noqa: S311
                await self._rung.wait()


class Wakeups:
    """All bells of a host, rung by one LISTEN connection and by the host's own commits.

    The connection is direct (LISTEN does not pass a pooler in transaction mode) and is opened again for
    ever. Without one every bell is left to its poll. `self_id` marks the host's own notifications, which
    come as no news. `channels` are listened to besides, for what is not in the log.
    """

    def __init__(self, connect: Connect | None, self_id: str, channels: Iterable[str] = ()) -> None:
        self._connect = connect
        self._self_id = self_id
        self._channels = tuple(channels)
        self._called: defaultdict[tuple[str, str], set[Bell]] = defaultdict(set)
        self._all: set[Bell] = set()
        self._foreign: set[Bell] = set()
        self._lost = asyncio.Event()
        self.listening = asyncio.Event()
        """Set while notifications arrive."""
        self._outage = Outage(log, "wake-ups")

    @contextmanager
    def bell(self, *, foreign_only: bool = False) -> Iterator[Bell]:
        """A bell for as long as it is needed; `foreign_only` leaves out what this host itself committed."""
        bells = self._foreign if foreign_only else self._all
        bells.add(bell := Bell())
        try:
            yield bell
        finally:
            bells.discard(bell)

    @contextmanager
    def bell_of(self, channel: str, call: str) -> Iterator[Bell]:
        """A bell that rings when `call` is sent on one of the `channels`."""
        bells = self._called[channel, call]
        bells.add(bell := Bell())
        try:
            yield bell
        finally:
            bells.discard(bell)

    def ring(self) -> None:
        """This host committed something."""
        for bell in self._all:
            bell.ring()

    async def run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while self._connect is not None:
            try:
                await self._listen(self._connect)
                pause_s = _FIRST_PAUSE_S
            except (DatabaseError, asyncpg.PostgresError) as error:
                self._outage.met(error)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _listen(self, connect: Connect) -> None:
        """Return when a connection that had worked is gone."""
        connection = await connect()
        self._lost.clear()
        try:
            connection.add_termination_listener(lambda _: self._lost.set())
            with translated():
                await connection.add_listener(CHANNEL, self._notified)
                for channel in self._channels:
                    await connection.add_listener(channel, self._heard)
                self.listening.set()
                self._outage.over()
                self._ring_all()  # for what was missed while nobody listened
                await self._until_lost(connection)
        finally:
            self.listening.clear()
            connection.terminate()

    async def _until_lost(self, connection: asyncpg.Connection) -> None:
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(_PROBE_S):
                    await self._lost.wait()
            except TimeoutError:
                # A connection that is dead without knowing it would be silent for ever.
                await connection.execute("SELECT 1", timeout=_PROBE_S)

    def _notified(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        if payload == self._self_id:
            return  # rung when it was committed
        self._ring_all()

    def _heard(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        for bell in self._called.get((channel, str(payload)), ()):
            bell.ring()

    def _ring_all(self) -> None:
        for bell in (*self._all, *self._foreign, *chain.from_iterable(self._called.values())):
            bell.ring()
