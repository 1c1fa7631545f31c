"""The event log: the one place where facts are kept."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

import asyncpg

from app.db.errors import StoreUnavailable
from app.metrics import Metrics
from app.store.batch import Append
from app.store.change import Change, Page
from app.store.errors import VersionConflict
from app.store.feed import Feed, Frame, LiveFrame
from app.store.link import Connect
from app.store.mapper import EventMapper
from app.store.notifier import Notifier
from app.store.reader import Reader
from app.store.remote import RemoteStreams
from app.store.subscription import subscribe
from app.store.wakeups import Bell, Wakeups
from app.store.writer import MAX_WAITING, GroupCommitWriter
from domain.events import Event, Recorded
from domain.ids import StreamId

__all__ = ["Change", "EventLog", "Frame", "LiveFrame", "Page", "StoreUnavailable", "VersionConflict"]

_CLOSE_PATIENCE_S = 5.0


class EventLog:
    """Append, read, follow. Use it as `async with EventLog(...) as log`.

    `connect` opens the writer's own connection; `listen` a direct one for LISTEN, without which there is
    polling only. `channels` are listened to besides, see `bell_of`.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        connect: Connect,
        mapper: EventMapper | None = None,
        *,
        listen: Connect | None = None,
        channels: Iterable[str] = (),
        strict: bool = False,
        max_waiting: int = MAX_WAITING,
        metrics: Metrics | None = None,
    ) -> None:
        self._mapper = mapper or EventMapper()
        self._metrics = metrics or Metrics()
        self._reader = Reader(pool, self._mapper)
        self._feed = Feed(self._reader)
        self._writer = GroupCommitWriter(
            connect,
            on_committed=self._committed,
            metrics=self._metrics,
            strict=strict,
            max_waiting=max_waiting,
        )
        host = str(self._writer.id)
        self._notifier = Notifier(pool, host)
        self._wakeups = Wakeups(listen, host, channels)
        self._remote = RemoteStreams(self._reader, self._feed, self._wakeups)
        self._tasks: list[asyncio.Task[None]] = []
        self.on_committed: list[Callable[[list[Recorded[Event]]], None]] = []
        """Told of what this host has written, in order, before its writers are. They must not raise."""

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def start(self) -> None:
        """Return at once: a store that is away is waited for by those who need it."""
        self._tasks = [
            _task(self._writer.run(), "event-writer"),
            _task(self._notifier.run(), "event-notifier"),
            _task(self._wakeups.run(), "event-wakeups"),
            _task(self._remote.run(), "event-remote-streams"),
        ]

    async def close(self) -> None:
        """Settle what was submitted, if the store lets us, then stop."""
        await self._writer.drain(_CLOSE_PATIENCE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def watch(self) -> None:
        """Return when the log is closed; raise what killed one of its tasks. For the host's task group."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.result()

    @property
    def down(self) -> StoreUnavailable | None:
        """Why nothing can be written now, as far as is known."""
        return self._writer.down

    @property
    def listening(self) -> asyncio.Event:
        """Set while other hosts' notifications arrive; while not, their news is found by polling."""
        return self._wakeups.listening

    async def append(self, *changes: Change, patience_s: float = 0.0) -> list[Recorded[Event]]:
        """Write all changes or none, and return their events as recorded.

        Raise VersionConflict, or StoreUnavailable once the store is known to be down and `patience_s` is
        over. After StoreUnavailable they may have been written all the same; a cancelled call may be
        written too.
        """
        return await self._writer.append(self._sealed(changes, patience_s))

    def submit(
        self, *changes: Change, patience_s: float = 0.0, proven: bool = False
    ) -> asyncio.Future[list[Recorded[Event]]]:
        """`append` for one who keeps only one of them under way: it does not wait for room in the queue.

        `proven`: the caller knows from this log that what the changes follow is stored.
        """
        return self._writer.submit(self._sealed(changes, patience_s, proven))

    async def read_stream(
        self, stream_id: StreamId, after: int = 0, limit: int | None = None
    ) -> list[Recorded[Event]]:
        """A stream's events after this sequence, oldest first. An unknown stream is empty."""
        return await self._reader.read_stream(stream_id, after, limit)

    async def read_stream_page(self, stream_id: StreamId, after: int, limit: int) -> Page:
        """The next part of a stream: `limit` events, or less of them that have a lot of payload."""
        return await self._reader.read_stream_page(stream_id, after, limit)

    async def read_last(self, stream_id: StreamId) -> Recorded[Event] | None:
        """A stream's last event; None for an unknown stream."""
        return await self._reader.read_last(stream_id)

    async def read_streams(
        self, wanted: Mapping[StreamId, int], limit: int | None = None
    ) -> list[Recorded[Event]]:
        """What each of these streams has after the given sequence, in one query; `limit` is per stream."""
        return await self._reader.read_streams(wanted, limit)

    async def read_page(self, after: int, limit: int) -> Page:
        """The log after a position, never past one that may still be filled (EVENT-5)."""
        return await self._reader.read_page(after, limit)

    async def end_position(self) -> int:
        """The highest visible position. Measure lag by it; start no reader there."""
        return await self._reader.end_position()

    def subscribe(self, after: int) -> AsyncGenerator[list[Recorded[Event]], None]:
        """Every event after a position, in order, each once, for ever; an outage is waited out."""
        return subscribe(self._reader, self._wakeups, after)

    def bell(self) -> AbstractContextManager[Bell]:
        """Rings when the log may have grown, for who reads it page by page."""
        return self._wakeups.bell()

    def bell_of(self, channel: str, call: str) -> AbstractContextManager[Bell]:
        """Rings when `call` is sent on a channel that this log listens to, for what is not in the log."""
        return self._wakeups.bell_of(channel, call)

    def follow(self, stream_id: StreamId, after: int) -> AsyncGenerator[list[Recorded[Event]], None]:
        """One stream's events as they come, on whichever host. It has no end: stop at the last event.

        Close it (`contextlib.aclosing`) when done. Raises StoreUnavailable if it has to read and cannot.
        """
        return self._feed.follow(stream_id, after)

    def follow_live(self, stream_id: StreamId, after: int) -> AsyncGenerator[list[Frame], None]:
        """The same with this host's live frames in between."""
        return self._feed.follow_live(stream_id, after)

    @property
    def following(self) -> int:
        """How many followers of single streams this host has now."""
        return self._feed.following

    def publish_live(self, stream_id: StreamId, event: Event, after: int) -> None:
        """Show this host's live followers what is not recorded. `after`: the stream's version then."""
        self._feed.publish_live(stream_id, LiveFrame(after=after, event=event))

    def own(self, stream_id: StreamId, pen: object) -> None:
        """This host alone writes the stream for as long as `pen` lives."""
        self._feed.own(stream_id, pen)

    def disown(self, stream_id: StreamId, pen: object) -> None:
        self._feed.disown(stream_id, pen)

    def _sealed(self, changes: Sequence[Change], patience_s: float, proven: bool = False) -> Append:
        sealed = [[self._mapper.seal(event) for event in change.events] for change in changes]
        return Append(changes, sealed, asyncio.get_running_loop().time() + patience_s, proven)

    def _committed(self, recorded: list[Recorded[Event]]) -> None:
        self._metrics.count_runs(recorded)
        for tell in self.on_committed:
            tell(recorded)
        self._feed.publish(recorded)
        self._wakeups.ring()
        self._notifier.poke()


def _task(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    return asyncio.create_task(work, name=name)
