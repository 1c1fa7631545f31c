"""The first events of streams that this host has just begun, for the follower who comes right after."""

import asyncio

from domain.events import Event, Recorded
from domain.ids import StreamId

MAX_STREAMS = 256
MAX_EVENTS = 16
KEPT_S = 1.0
"""Whoever begins a run and wants to see it is there at once."""


class Beginnings:
    """Spares the first follower of a new stream its query. What it does not have is in the database."""

    def __init__(self) -> None:
        self._streams: dict[StreamId, list[Recorded[Event]]] = {}

    def keep(self, recorded: list[Recorded[Event]]) -> None:
        """Committed events of one stream, in order, from the start of it on or following what is kept."""
        stream_id = recorded[0].stream_id
        kept = self._streams.get(stream_id)
        if kept is None:
            if recorded[0].sequence == 1:
                self._begin(stream_id, recorded)
        elif recorded[0].sequence == kept[-1].sequence + 1 and len(kept) + len(recorded) <= MAX_EVENTS:
            kept += recorded
        else:
            del self._streams[stream_id]

    def take(self, stream_id: StreamId, after: int) -> list[Recorded[Event]]:
        """What this host has written of the stream after a sequence, once; nothing if it does not know."""
        kept = self._streams.pop(stream_id, [])
        return kept[after:]

    def _begin(self, stream_id: StreamId, recorded: list[Recorded[Event]]) -> None:
        if len(self._streams) >= MAX_STREAMS or len(recorded) > MAX_EVENTS:
            return
        kept = self._streams[stream_id] = list(recorded)
        asyncio.get_running_loop().call_later(KEPT_S, self._forget, stream_id, kept)

    def _forget(self, stream_id: StreamId, kept: list[Recorded[Event]]) -> None:
        if self._streams.get(stream_id) is kept:
            del self._streams[stream_id]
