"""What goes into the log and what comes out of it."""

import msgspec

from domain.events import Event, Recorded
from domain.ids import StreamId, Version


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Events for one stream, to follow version `expected` directly (0: the stream is new)."""

    stream_id: StreamId
    expected: Version
    tenant: str
    events: tuple[Event, ...]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Events in the log's order, after which no earlier one can appear (EVENT-5).

    `pending`: look again within milliseconds, however few they are. The page ends before a position that may
    still be filled, or it has as much as a page may hold.
    """

    events: list[Recorded[Event]]
    pending: bool
