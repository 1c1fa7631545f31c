"""The end of the log, read once for all views of a host."""

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice

import msgspec

from projections.base import Bell, Fact, LogReader, Page

_KEPT_EVENTS = 1000
"""Views that keep up are within a page of one another. One that is further behind asks for itself."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """All events after `start`, up to and with that at `end`."""

    start: int
    end: int
    events: tuple[Fact, ...]


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    events: list[Fact]
    pending: bool = False


class SharedTail:
    """A reader of the log that remembers the last pages, for the other views that come to the same place.

    What was read once may be told again: events do not change, and a page never goes past a place that may
    still be filled (EVENT-5).
    """

    def __init__(self, log: LogReader) -> None:
        self._log = log
        self._parts: deque[_Part] = deque()
        self._kept = 0

    async def read_page(self, after: int, limit: int) -> Page:
        """From memory where anything is known of what follows `after`, else from the log."""
        if known := self._known(after, limit):
            return _Found(events=known)
        page = await self._log.read_page(after, limit)
        if page.events:
            self._keep(after, page.events)
        return page

    async def end_position(self) -> int:
        return await self._log.end_position()

    def bell(self) -> AbstractContextManager[Bell]:
        return self._log.bell()

    def _known(self, after: int, limit: int) -> list[Fact]:
        if not self._parts or not self._parts[0].start <= after < self._parts[-1].end:
            return []
        following = chain.from_iterable(part.events for part in self._parts if part.end > after)
        return list(islice((one for one in following if one.position > after), limit))

    def _keep(self, after: int, events: Sequence[Fact]) -> None:
        """The parts follow one another without a gap. Of views that ask at once, one extends them."""
        known_to = self._parts[-1].end if self._parts else after
        if after > known_to:
            self._parts.clear()  # a view that is further ahead: the others will follow it there
            self._kept, known_to = 0, after
        new = tuple(one for one in events if one.position > known_to)
        if new:
            self._parts.append(_Part(start=known_to, end=new[-1].position, events=new))
            self._kept += len(new)
        while len(self._parts) > 1 and self._kept > _KEPT_EVENTS:
            self._kept -= len(self._parts.popleft().events)
