"""Events as bytes: every topic, for ever (EVENT-9)."""

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given

from domain.codec import Codec, UnknownTopic, UnreadableEvent
from domain.events import Event, RunCancelled, RunCompleted, topic_of
from tests.domain.samples import SAMPLES
from tests.domain.strategies import EVENT_TYPES, events

GOLDEN = Path(__file__).parent / "golden"
DEFAULTS = Path(__file__).parent / "defaults.json"
CODEC = Codec()


@given(event=events())
def test_what_is_written_is_read_back_as_it_was(event: Event) -> None:
    topic, payload = CODEC.encode(event)
    again = CODEC.decode(topic, payload)
    assert again == event
    assert CODEC.encode(again) == (topic, payload)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_golden_file_is_what_its_event_is_written_as(name: str) -> None:
    """EVENT-9: bytes on disk never change their meaning. If this fails, the topic needs a new version."""
    topic, payload = CODEC.encode(SAMPLES[name])
    assert name.partition("+")[0] == topic
    assert (GOLDEN / f"{name}.json").read_bytes() == payload


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_a_golden_file_is_read_as_its_event(path: Path) -> None:
    """EVENT-9: an old event stays readable."""
    assert CODEC.decode(path.stem.partition("+")[0], path.read_bytes()) == SAMPLES[path.stem]


def test_every_topic_has_a_golden_file() -> None:
    """EVENT-9: a test holds samples of each."""
    assert CODEC.topics - {path.stem for path in GOLDEN.glob("*.json")} == frozenset()


@pytest.mark.parametrize("event_type", EVENT_TYPES, ids=topic_of)
def test_every_field_is_in_a_golden_file(event_type: type[Event]) -> None:
    """A field at its default is not written, so a file that leaves it there would not see it renamed."""
    written: set[str] = set()
    for event in SAMPLES.values():
        if isinstance(event, event_type):
            written |= msgspec.json.decode(CODEC.encode(event)[1]).keys()
    assert {field.encode_name for field in msgspec.structs.fields(event_type)} - written == set()


def test_defaults_are_for_ever() -> None:
    """A field at its default is not written: another default would give old events another meaning."""
    written = json.loads(DEFAULTS.read_bytes())
    now = {struct.__name__: _defaults(struct) for struct in _structs_in_events()}
    assert {name: fields for name, fields in now.items() if fields} == written


def _structs_in_events() -> set[type[msgspec.Struct]]:
    found: set[type[msgspec.Struct]] = set()
    hints: list[Any] = list(EVENT_TYPES)
    while hints:
        hint = hints.pop()
        hints.extend(get_args(hint))
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint not in found:
            found.add(hint)
            hints.extend(field.type for field in msgspec.structs.fields(hint))
    return found


def _defaults(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {
        field.encode_name: msgspec.json.decode(msgspec.json.encode(_default(field)))
        for field in msgspec.structs.fields(struct)
        if not field.required
    }


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


class RunCompletedV0(Event, frozen=True, kw_only=True, tag="run.completed.v0"):
    """What the end of a run could have looked like before it had an answer of its own."""

    words: tuple[str, ...]


def lifted(old: RunCompletedV0) -> Event:
    return RunCompleted(answer=" ".join(old.words))


def test_a_retired_topic_is_read_as_todays_event() -> None:
    """EVENT-9: upcasting."""
    codec = Codec(retired={RunCompletedV0: lifted})
    topic, payload = codec.encode(RunCompletedV0(words=("ships", "today")))
    assert topic == "run.completed.v0"
    assert codec.decode(topic, payload) == RunCompleted(answer="ships today")
    assert codec.topics == {*CODEC.topics, "run.completed.v0"}


def test_a_field_from_a_newer_build_is_passed_over() -> None:
    """Two builds share a log while a deployment is under way."""
    payload = b'{"topic":"run.cancelled.v1","reason":"slow","by":"ops"}'
    assert CODEC.decode("run.cancelled.v1", payload) == RunCancelled(reason="slow")


def test_a_topic_of_a_newer_build_stops_the_reader() -> None:
    with pytest.raises(UnknownTopic, match=r"run\.dreamt\.v1"):
        CODEC.decode("run.dreamt.v1", b"{}")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"{",
        b'{"topic":"run.completed.v1"}',
        b'{"topic":"run.cancelled.v1","answer":"x"}',
        b'{"topic":"run.completed.v1","answer":7}',
        b'{"topic":"run.completed.v1","answer":"\xff"}',
    ],
)
def test_damaged_bytes_stop_the_reader(payload: bytes) -> None:
    with pytest.raises(UnreadableEvent, match=r"topic 'run\.completed\.v1' does not decode"):
        CODEC.decode("run.completed.v1", payload)


def test_a_topic_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        Codec(current=(RunCompleted, RunCompleted))


def test_topics_are_versioned_and_never_shared() -> None:
    topics = [topic_of(event_type) for event_type in EVENT_TYPES]
    assert len(set(topics)) == len(topics)
    assert [topic for topic in topics if not topic.rpartition(".v")[2].isdigit()] == []
