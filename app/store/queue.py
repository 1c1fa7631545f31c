"""Appends that wait to be written, and which of them the next batch takes."""

from collections import deque
from collections.abc import Iterator

from app.store.batch import Append

_MAX_EVENTS = 1000
_MAX_BYTES = 4 << 20


class AppendQueue:
    """First come, first served, save that a stream is in a batch once.

    Two appends of one stream in one batch would be judged apart: the second could be written though the
    first was refused (EVENT-3).
    """

    def __init__(self, max_events: int = _MAX_EVENTS, max_bytes: int = _MAX_BYTES) -> None:
        self._waiting: deque[Append] = deque()
        self._max_events = max_events
        self._max_bytes = max_bytes

    def __iter__(self) -> Iterator[Append]:
        return iter(self._waiting)

    def put(self, append: Append) -> None:
        self._waiting.append(append)

    def take(self) -> list[Append]:
        """The next batch. What nobody waits for any more is left out."""
        batch: list[Append] = []
        held_back: list[Append] = []
        streams: set[int] = set()
        events = size = 0
        while self._waiting and events + len(held_back) < self._max_events and size < self._max_bytes:
            append = self._waiting.popleft()
            if append.outcome.done():
                continue
            wanted = {change.stream_id.int for change in append.changes}  # an id's own hash is slow
            if streams.isdisjoint(wanted):
                batch.append(append)
                events += append.events
                size += append.size
            else:
                held_back.append(append)
            streams |= wanted  # also of one held back: what came later must not pass it
        self._waiting.extendleft(reversed(held_back))
        return batch
