"""The event log in the `eventsourcing` library's blocking terms, so that its contract suites can drive it.

For tests only: an event loop in a thread of its own, and each call a round trip to it.
"""

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import asyncpg
from eventsourcing.persistence import (
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    ProcessRecorder,
    StoredEvent,
    Subscription,
    Tracking,
)

from app.db.pool import connect, open_pool
from app.store.event_log import Change, EventLog, VersionConflict
from app.store.mapper import EventMapper
from app.store.notifier import CHANNEL
from app.store.sql import sql
from domain.events import Event, Recorded
from domain.ids import DEFAULT_TENANT, StreamId, Version

T = TypeVar("T")

_TRACK = """
INSERT INTO notification_tracking AS t VALUES ($1, $2)
    ON CONFLICT (application_name) DO UPDATE SET notification_id = $2 WHERE t.notification_id < $2
    RETURNING notification_id
"""


class Opaque(Event, frozen=True, kw_only=True, tag="opaque.v1"):
    """An event of somebody else's: a topic and bytes."""

    name: str
    state: bytes


class OpaqueMapper(EventMapper):
    """Rows as they are."""

    def seal(self, event: Event) -> tuple[str, bytes]:
        assert isinstance(event, Opaque)
        return event.name, event.state

    def open(self, topic: str, state: bytes) -> Event:
        return Opaque(name=topic, state=state)


class Recorder(ProcessRecorder):
    """`group_commit` goes through the log's writer; without it each insert is a call of the SQL function."""

    def __init__(self, dsn: str, *, group_commit: bool, strict: bool) -> None:
        self._group_commit = group_commit
        self._strict = strict
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.run(self._open(dsn))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def close(self) -> None:
        self.run(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def insert_events(self, stored_events: Sequence[StoredEvent], **options: Any) -> Sequence[int] | None:
        tracking: Tracking | None = options.get("tracking")
        if tracking is None and not stored_events:
            return None
        by_the_writer = self._group_commit and tracking is None
        return self.run((self._append if by_the_writer else self._insert)(stored_events, tracking))

    def select_events(
        self,
        originator_id: Any,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        after = -1 if gt is None else gt
        found = self.run(self.log.read_stream(StreamId(originator_id), after=after))
        events = [_stored(one) for one in found if lte is None or one.sequence <= lte]
        return (events[::-1] if desc else events)[:limit]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        after = (start or 0) - (1 if start and inclusive_of_start else 0)
        found: list[Notification] = []
        while page := self.run(self.log.read_page(after, 500)).events:
            after = page[-1].position
            found += [
                Notification(**vars(_stored(one)), id=one.position)
                for one in page
                if (not topics or _topic(one) in topics) and (stop is None or one.position <= stop)
            ]
            if len(found) >= limit:
                break
        return found[:limit]

    def max_notification_id(self) -> int | None:
        return self.run(self.log.end_position()) or None

    def insert_tracking(self, tracking: Tracking) -> None:
        self.run(self._insert((), tracking))

    def max_tracking_id(self, application_name: str) -> int | None:
        query = "SELECT notification_id FROM notification_tracking WHERE application_name = $1"
        position: int | None = self.run(self.pool.fetchval(query, application_name))
        return position

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[Any]:
        return _Listening(self, gt=gt, topics=topics)

    async def _open(self, dsn: str) -> None:
        self.pool = await open_pool(dsn)
        self.log = EventLog(self.pool, partial(connect, dsn), OpaqueMapper(), strict=self._strict)
        self.log.start()

    async def _shut(self) -> None:
        await self.log.close()
        await self.pool.close()

    async def _append(self, stored_events: Sequence[StoredEvent], _: Tracking | None) -> list[int]:
        try:
            recorded = await self.log.append(*_changes(stored_events))
        except VersionConflict as conflict:
            raise IntegrityError(str(conflict)) from conflict
        return [one.position for one in recorded]

    async def _insert(self, stored_events: Sequence[StoredEvent], tracking: Tracking | None) -> list[int]:
        async with self.pool.acquire() as connection, connection.transaction():
            if tracking and not await connection.fetchval(
                _TRACK, tracking.application_name, tracking.notification_id
            ):
                raise IntegrityError(f"already past {tracking}")
            if not stored_events:
                return []
            try:
                [row] = await connection.fetch(
                    sql("append"), self._strict, None, [], [], *_columns(stored_events)
                )
            except asyncpg.UniqueViolationError as error:
                raise IntegrityError(str(error)) from error
            await connection.execute(f"NOTIFY {CHANNEL}")
            return list(row["positions"])


class _Listening(ListenNotifySubscription[Recorder]):
    def __init__(self, recorder: Recorder, gt: int | None, topics: Sequence[str]) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        recorder.run(self._listen())

    def __exit__(self, *args: object, **options: Any) -> None:
        try:
            super().__exit__(*args, **options)
        finally:
            self._recorder.run(self._unlisten())

    async def _listen(self) -> None:
        self._connection = await self._recorder.pool.acquire()
        await self._connection.add_listener(CHANNEL, self._notified)

    async def _unlisten(self) -> None:
        await self._connection.remove_listener(CHANNEL, self._notified)
        await self._recorder.pool.release(self._connection)

    def _notified(self, *_: object) -> None:
        self._has_been_notified.set()


def _changes(stored_events: Sequence[StoredEvent]) -> list[Change]:
    grouped = itertools.groupby(stored_events, lambda event: event.originator_id)
    return [_change(StreamId(originator_id), list(events)) for originator_id, events in grouped]


def _change(stream_id: StreamId, events: list[StoredEvent]) -> Change:
    first = events[0].originator_version
    if [event.originator_version for event in events] != list(range(first, first + len(events))):
        raise IntegrityError("the versions of one insert do not follow each other")
    return Change(
        stream_id=stream_id,
        expected=Version(first - 1),
        tenant=DEFAULT_TENANT,
        events=tuple(Opaque(name=event.topic, state=event.state) for event in events),
    )


def _columns(events: Sequence[StoredEvent]) -> tuple[list[Any], ...]:
    return (
        [event.originator_id for event in events],
        [event.originator_version for event in events],
        [event.topic for event in events],
        [event.state for event in events],
        [DEFAULT_TENANT for _ in events],
    )


def _topic(recorded: Recorded[Event]) -> str:
    assert isinstance(recorded.event, Opaque)
    return recorded.event.name


def _stored(recorded: Recorded[Event]) -> StoredEvent:
    assert isinstance(recorded.event, Opaque)
    return StoredEvent(
        originator_id=recorded.stream_id,
        originator_version=recorded.sequence,
        topic=recorded.event.name,
        state=recorded.event.state,
    )
