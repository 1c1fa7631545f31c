"""Rows at rest: compressed, encrypted, readable by those who should and by nobody else."""

import base64
import json
import sys
from typing import get_args
from uuid import uuid4

import asyncpg
import pytest
from eventsourcing.persistence import StoredEvent
from eventsourcing.utils import resolve_topic

from app.store.event_log import EventLog
from app.store.mapper import EventMapper, Fact
from domain.codec import UnknownTopic, UnreadableEvent
from domain.events import AnyEvent, RunCompleted, TextDelta, topic_of
from tests.store.conftest import OpenLog
from tests.store.samples import change, said, stream, texts

KEY = bytes(range(32))
LONG = TextDelta(step=1, text="over and over " * 500)

ways = pytest.mark.parametrize(
    "mapper",
    [
        EventMapper(),
        EventMapper(compress=True),
        EventMapper(key=KEY),
        EventMapper(compress=True, key=KEY),
    ],
    ids=["plain", "compressed", "encrypted", "both"],
)


@ways
@pytest.mark.parametrize("event", [said("ü"), LONG, RunCompleted(answer="")], ids=["text", "long", "empty"])
def test_an_event_comes_back_as_it_was(mapper: EventMapper, event: TextDelta | RunCompleted) -> None:
    topic, state = mapper.seal(event)
    assert topic == topic_of(event)
    assert mapper.open(topic, state) == event


@ways
def test_the_library_maps_facts_by_the_same_mapper(mapper: EventMapper) -> None:
    fact = Fact(originator_id=uuid4(), originator_version=3, event=LONG)
    stored = mapper.to_stored_event(fact)
    assert (stored.originator_id, stored.originator_version) == (fact.originator_id, 3)
    assert mapper.to_domain_event(stored) == fact


def test_the_library_cannot_store_what_is_no_fact() -> None:
    with pytest.raises(TypeError, match="not a fact"):
        EventMapper().to_stored_event(said("x"))  # type: ignore[arg-type]


def test_a_plain_row_is_json_that_anybody_can_read() -> None:
    topic, state = EventMapper().seal(said("hello"))
    assert json.loads(state) == {"topic": topic, "step": 1, "text": "hello"}


def test_rows_as_they_lie_in_databases_still_read() -> None:
    """EVENT-9, for every way of storing a payload."""
    compressed = base64.b64decode("eJyrVirJL8hMVrJSKkmtKNFLSc0pSdQrM1TSUSouSS1QsjLUAUtA5ZVqAYfJD7s=")
    encrypted = base64.b64decode(
        "i3VMX/uMIUDqXnhwmuPIZzpLby5kXac469J7QtRzoZMMC+o2Nn0GrMctnNUpKWAqG4VwDdR8APCLt4XCoLsLs7uQDHsQBRVqRjL/WQ=="
    )
    plain = b'{"topic":"text.delta.v1","step":1,"text":"text"}'
    assert EventMapper().open("text.delta.v1", plain) == said("text")
    assert EventMapper().open("text.delta.v1", compressed) == said("text")
    assert EventMapper(key=KEY).open("text.delta.v1", encrypted) == said("text")


def test_compression_makes_long_payloads_short() -> None:
    assert len(EventMapper(compress=True).seal(LONG)[1]) < len(EventMapper().seal(LONG)[1]) / 50


@pytest.mark.parametrize("compress", [False, True])
def test_turning_compression_on_or_off_leaves_older_rows_readable(compress: bool) -> None:
    topic, state = EventMapper(compress=not compress).seal(LONG)
    assert EventMapper(compress=compress).open(topic, state) == LONG


def test_an_encrypted_row_shows_nothing_of_its_text() -> None:
    _, state = EventMapper(key=KEY).seal(said("secret"))
    assert b"secret" not in state
    assert state != EventMapper(key=KEY).seal(said("secret"))[1]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (EventMapper(key=KEY), EventMapper(key=KEY[::-1])),
        (EventMapper(), EventMapper(key=KEY)),
        (EventMapper(key=KEY), EventMapper()),
    ],
    ids=["another key", "written without", "read without"],
)
def test_a_row_under_another_key_is_refused_by_name(written: EventMapper, read: EventMapper) -> None:
    with pytest.raises(UnreadableEvent, match=r"'text\.delta\.v1'.*key|encrypted"):
        read.open(*written.seal(LONG))


@pytest.mark.parametrize("size", [16, 24, 32])
def test_a_key_may_be_bytes_or_a_text_in_base64(size: int) -> None:
    topic, state = EventMapper(key=KEY[:size]).seal(LONG)
    encoded = base64.b64encode(KEY[:size]).decode()
    assert EventMapper(key=encoded).open(topic, state) == LONG


@pytest.mark.parametrize("key", ["", "short", b"\xff" * 17, base64.b64encode(KEY[:20]).decode()])
def test_a_key_of_the_wrong_shape_is_refused(key: str | bytes) -> None:
    with pytest.raises(ValueError, match="encryption key"):
        EventMapper(key=key)


def test_nothing_that_a_row_names_is_imported() -> None:
    mapper = EventMapper()
    for event_type in get_args(AnyEvent):
        assert resolve_topic(topic_of(event_type)) is event_type
    with pytest.raises(UnknownTopic):
        mapper.to_domain_event(StoredEvent(uuid4(), 1, "antigravity:fly", b"{}"))
    assert "antigravity" not in sys.modules


async def test_a_log_at_rest_is_read_with_its_key_alone(open_log: OpenLog, pool: asyncpg.Pool) -> None:
    """A reader without the key stops; it never skips."""
    log: EventLog = await open_log(mapper=EventMapper(compress=True, key=KEY))
    run = stream()
    await log.append(change(run, 0, "secret"))
    assert texts(await log.read_stream(run)) == ["secret"]
    stranger: EventLog = await open_log(mapper=EventMapper(key=KEY[::-1]))
    with pytest.raises(UnreadableEvent, match=f"event 1 of stream {run}: "):
        await stranger.read_page(after=0, limit=10)
    assert b"secret" not in await pool.fetchval("SELECT state FROM stored_events")
