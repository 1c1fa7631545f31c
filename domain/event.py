"""What every fact of the log is. The facts themselves are in `events` and in the modules that it gathers."""

from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from domain.ids import StreamId, Version


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="topic", omit_defaults=True):
    """A fact. It carries no time and no sequence: the log stamps both (`Recorded`)."""


E_co = TypeVar("E_co", bound=Event, covariant=True)


class Recorded(msgspec.Struct, Generic[E_co], frozen=True, kw_only=True):
    """An event at its place in the log.

    `sequence` counts the events of one stream from 1 without a gap; `position` orders the whole log, with
    holes; `at` is the database's clock (UTC).
    """

    stream_id: StreamId
    sequence: Version
    position: int
    at: datetime
    tenant: str
    event: E_co


def topic_of(event: Event | type[Event]) -> str:
    """The event's name on disk."""
    return str(event.__struct_config__.tag)
