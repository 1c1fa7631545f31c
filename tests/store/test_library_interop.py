"""The `eventsourcing` library's own Postgres code, in other threads, on a log that we wrote."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import asyncpg
import pytest
from eventsourcing.application import Application, LocalNotificationLog, Repository
from eventsourcing.persistence import EventStore, Mapper, StoredEvent, Tracking
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore, PostgresTrackingRecorder
from eventsourcing.projection import Projection, ProjectionRunner

from app.store.event_log import EventLog
from app.store.mapper import EventMapper, Fact
from domain.events import TextDelta
from tests.store.conftest import OpenLog
from tests.store.samples import PATIENCE_S, change, collect, stream, texts


@pytest.fixture
def env(database: str) -> dict[str, str]:
    parts = urlsplit(database)
    query = parse_qs(parts.query)
    return {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_DBNAME": parts.path.strip("/"),
        "POSTGRES_HOST": query["host"][0],
        "POSTGRES_PORT": query["port"][0],
        "POSTGRES_USER": parts.username or "",
        "POSTGRES_PASSWORD": "unused",
    }


@pytest.fixture
def recorder(env: dict[str, str]) -> Iterator[PostgresApplicationRecorder]:
    with PostgresDatastore(
        dbname=env["POSTGRES_DBNAME"],
        host=env["POSTGRES_HOST"],
        port=env["POSTGRES_PORT"],
        user=env["POSTGRES_USER"],
        password=env["POSTGRES_PASSWORD"],
        pool_size=3,  # a subscription keeps one
    ) as datastore:
        recorder = PostgresApplicationRecorder(datastore)
        recorder.create_table()  # finds ours, and adds what its own inserts need
        yield recorder


class Transcript:
    """An aggregate in the library's terms: it knows its id and version and folds facts."""

    def __init__(self, originator_id: UUID) -> None:
        self.id = originator_id
        self.version = 0
        self.said: list[str] = []

    @staticmethod
    def fold(transcript: "Transcript | None", facts: Any) -> "Transcript | None":
        for fact in facts:
            assert isinstance(fact, Fact)
            assert isinstance(fact.event, TextDelta)
            transcript = transcript or Transcript(fact.originator_id)
            transcript.version = fact.originator_version
            transcript.said.append(fact.event.text)
        return transcript


async def test_the_library_audits_and_folds_what_we_wrote(
    log: EventLog, recorder: PostgresApplicationRecorder
) -> None:
    runs = [stream() for _ in range(12)]
    told = [one for run in runs for one in await log.append(change(run, 0, "a", "b"))]
    told += [one for run in runs for one in await log.append(change(run, 2, "c"))]

    items = await asyncio.to_thread(LocalNotificationLog(recorder, section_size=100).select, 1, 100)
    assert [(one.id, one.originator_id, one.originator_version) for one in items] == [
        (one.position, one.stream_id, one.sequence) for one in told
    ]
    repository = Repository[UUID](EventStore[UUID](EventMapper(), recorder))
    for run in runs:
        folded: Any = await asyncio.to_thread(repository.get, run, projector_func=Transcript.fold)
        assert (folded.version, folded.said) == (3, ["a", "b", "c"])


async def test_we_and_the_library_may_write_in_turn_and_wake_each_other(
    log: EventLog, recorder: PostgresApplicationRecorder
) -> None:
    """A row of the library's gets our defaults, its place in the order, and its notification reaches us."""
    theirs, ours = stream(), stream()
    mapper = EventMapper()
    seen: list[int] = []
    listening = threading.Thread(target=_first, args=(recorder, 4, seen), daemon=True)
    listening.start()
    pages = log.subscribe(after=0)
    for number in range(2):
        [event] = change(theirs, number, f"theirs {number}").events
        stored = StoredEvent(theirs, number + 1, *mapper.seal(event))
        await asyncio.to_thread(recorder.insert_events, [stored])
        await log.append(change(ours, number, f"ours {number}"))
    found = await collect(pages, 4)
    await asyncio.to_thread(listening.join, PATIENCE_S)
    assert texts(found) == ["theirs 0", "ours 0", "theirs 1", "ours 1"]
    assert [one.position for one in found] == seen
    assert {one.tenant for one in found} == {"default"}
    await pages.aclose()


def _first(recorder: PostgresApplicationRecorder, count: int, seen: list[int]) -> None:
    with recorder.subscribe(gt=0) as subscription:
        for notification in subscription:
            seen.append(notification.id)
            if len(seen) == count:
                return


class Stored(Application[UUID]):
    """The log as an application of the library's: its name makes the table `stored_events`."""

    name = "stored"

    def construct_mapper(self) -> Mapper[UUID]:
        return EventMapper()


class View(PostgresTrackingRecorder):
    """Keeps what was said, and how far it has come in our own tracking table."""

    said: ClassVar[list[str]] = []


class Notification(Projection[View]):
    """Its name makes the table `notification_tracking`."""

    name = "notification"

    def process_event(self, domain_event: Any, tracking: Tracking) -> None:
        self.view.insert_tracking(tracking)
        self.view.said.append(domain_event.event.text)


async def test_the_librarys_projection_runner_follows_our_log(
    open_log: OpenLog, pool: asyncpg.Pool, env: dict[str, str]
) -> None:
    """DESIGN: `strict` gives the library's own tailing readers the order that they rely on."""
    log: EventLog = await open_log(strict=True)
    run = stream()
    await log.append(change(run, 0, "before"))
    await pool.execute("INSERT INTO notification_tracking VALUES ('ours', 7)")
    View.said.clear()
    runner = await asyncio.to_thread(_run, env)
    try:
        for number in range(1, 6):
            last = await log.append(change(run, number, f"live {number}"))
        await asyncio.to_thread(runner.wait, last[0].position, timeout=PATIENCE_S)
    finally:
        await asyncio.to_thread(runner.__exit__, None, None, None)
    assert View.said == ["before", *(f"live {number}" for number in range(1, 6))]
    rows = await pool.fetch("SELECT * FROM notification_tracking")
    assert await pool.fetchval("SELECT to_regclass('bkup1_notification_tracking')") is None
    assert {row[0]: row[1] for row in rows} == {"__migration__": 1, "ours": 7, "stored": last[0].position}


def _run(env: dict[str, str]) -> ProjectionRunner[Stored, View]:
    runner = ProjectionRunner(
        application_class=Stored, projection_class=Notification, view_class=View, env=env
    )
    return runner.__enter__()
