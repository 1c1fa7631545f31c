"""The group-commit writer: what queues while one transaction is under way goes into the next."""

import asyncio
import time
from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg

from app.db.errors import StoreUnavailable
from app.metrics import Metrics
from app.store.batch import Append
from app.store.commit import Committer, Outcome
from app.store.link import Connect, Link
from app.store.queue import AppendQueue
from domain.events import Event, Recorded

MAX_WAITING = 10_000
"""Appends that wait for the writer; more wait for room."""


class GroupCommitWriter:
    """One task and one connection. An idle writer commits at once; a busy one fills its next batch meanwhile.

    An append ends in its events as recorded, in VersionConflict, or in StoreUnavailable. The last comes
    only once the store is known to be down and the append's deadline is over; the append may then have been
    stored all the same.

    `on_committed` is told each batch's events, in commit order, before any caller is. It must not raise.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        on_committed: Callable[[list[Recorded[Event]]], None],
        metrics: Metrics,
        strict: bool = False,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._committer = Committer(metrics, strict=strict)
        self._on_committed = on_committed
        self._metrics = metrics
        self._queue = AppendQueue()
        self._room = asyncio.Semaphore(max_waiting)
        self._wake = asyncio.Event()
        self._unanswered: list[Append] = []
        self._link = Link(connect, on_change=self._up_or_down, on_loss=self._wake.set)
        self._closing = False
        self._up_or_down()

    @property
    def id(self) -> UUID:
        """Marks what this host wrote."""
        return self._committer.id

    @property
    def down(self) -> StoreUnavailable | None:
        """Why nothing can be written now, as far as is known."""
        return self._link.down

    async def append(self, append: Append) -> list[Recorded[Event]]:
        """Wait for room, then for the outcome. Cancelling the caller does not cancel what is under way."""
        if self._link.down and self._room.locked():
            raise _unavailable(self._link.down)  # nobody can say when there will be room
        async with self._room:
            return await self.submit(append)

    def submit(self, append: Append) -> asyncio.Future[list[Recorded[Event]]]:
        """Queue it without waiting for room."""
        if self._closing:
            append.outcome.set_exception(StoreUnavailable("this host is writing no more"))
            return append.outcome
        if self._link.down:
            self._expire_in_time(append)
        self._queue.put(append)
        self._wake.set()
        return append.outcome

    async def run(self) -> None:
        """Write for ever. However this ends, nobody is left waiting."""
        try:
            await self._write_all()
        finally:
            self._closing = True
            self._link.close()
            self._fail_all(StoreUnavailable("this host is writing no more"))

    async def drain(self, at_most_s: float) -> None:
        """Take nothing more, and wait for what was taken."""
        self._closing = True
        outcomes = [append.outcome for append in (*self._unanswered, *self._queue)]
        if outcomes:
            await asyncio.wait(outcomes, timeout=at_most_s)

    async def _write_all(self) -> None:
        while True:
            connection = await self._link.connection()
            self._unanswered = self._awaited() or self._queue.take()
            if self._unanswered:
                await self._settle(connection)
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _settle(self, connection: asyncpg.Connection) -> None:
        began = time.perf_counter()
        try:
            self._tell(await self._committer.commit(connection, self._unanswered))
        except StoreUnavailable as error:
            self._metrics.append_seconds.labels("unavailable").observe(time.perf_counter() - began)
            for append in self._unanswered:
                append.resent = True
            self._link.failed(error)
        else:
            self._link.answered()
        self._unanswered = self._awaited()

    def _awaited(self) -> list[Append]:
        """Who gave up, or was told that the store is unavailable, must not find it written much later."""
        return [append for append in self._unanswered if not append.outcome.done()]

    def _tell(self, outcomes: Sequence[tuple[Append, Outcome]]) -> None:
        committed = [one for _, outcome in outcomes if isinstance(outcome, list) for one in outcome]
        if committed:
            self._on_committed(committed)
        for append, outcome in outcomes:
            if isinstance(outcome, Exception):
                _fail(append, outcome)
            elif not append.outcome.done():
                append.outcome.set_result(outcome)

    def _up_or_down(self) -> None:
        self._metrics.store_up.set(0 if self._link.down else 1)
        if self._link.down:
            for append in (*self._unanswered, *self._queue):
                self._expire_in_time(append)

    def _expire_in_time(self, append: Append) -> None:
        asyncio.get_running_loop().call_at(append.deadline, self._expire, append)

    def _expire(self, append: Append) -> None:
        if down := self._link.down:
            _fail(append, _unavailable(down))

    def _fail_all(self, error: StoreUnavailable) -> None:
        for append in (*self._unanswered, *self._queue):
            _fail(append, error)


def _unavailable(down: StoreUnavailable) -> StoreUnavailable:
    """One for each caller: an exception collects the traceback of everyone who raises it."""
    return StoreUnavailable(str(down), down.retry_after_s)


def _fail(append: Append, error: Exception) -> None:
    if not append.outcome.done():
        append.outcome.set_exception(error)
