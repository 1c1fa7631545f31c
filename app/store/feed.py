"""Following one stream, live or finished, on any host.

What this host's writer commits reaches the stream's followers from memory. What another host writes is read
from the database: for all followed streams together, see `remote`. A follower that cannot keep up loses its
buffer, never an event: it reads on from the database.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from itertools import groupby
from typing import cast
from weakref import WeakValueDictionary

from app.store.beginnings import Beginnings
from app.store.follower import Follower, Frame, LiveFrame
from app.store.reader import Reader
from domain.events import Event, Recorded
from domain.ids import StreamId

__all__ = ["Feed", "Frame", "LiveFrame"]

_PAGE = 200


class _Channel:
    """The followers of one stream. Each of them was offered everything up to `head`, or is past it."""

    __slots__ = ("followers", "head")

    def __init__(self, head: int) -> None:
        self.followers: list[Follower] = []
        self.head = head

    def offer(self, recorded: list[Recorded[Event]], source: Follower | None = None) -> None:
        """To all but the follower who found it."""
        frames: list[Frame] = list(recorded)
        self.head = max(self.head, recorded[-1].sequence)
        for follower in self.followers:
            if follower is not source:
                follower.offer(frames)


class Feed:
    """All followed streams of a host."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._channels: dict[StreamId, _Channel] = {}
        self._beginnings = Beginnings()
        self._pens: WeakValueDictionary[StreamId, object] = WeakValueDictionary()
        self.followed = asyncio.Event()
        """Set while anybody follows anything."""

    @property
    def following(self) -> int:
        return sum(len(channel.followers) for channel in self._channels.values())

    def own(self, stream_id: StreamId, pen: object) -> None:
        """This host writes the stream, as long as `pen` lives: nobody needs to ask the database for it."""
        self._pens[stream_id] = pen

    def disown(self, stream_id: StreamId, pen: object) -> None:
        if self._pens.get(stream_id) is pen:
            del self._pens[stream_id]

    def follow(self, stream_id: StreamId, after: int) -> AsyncGenerator[list[Recorded[Event]], None]:
        """A stream's events after a sequence as they come. It has no end: the caller knows the last event."""
        return cast("AsyncGenerator[list[Recorded[Event]], None]", self._follow(stream_id, after, live=False))

    def follow_live(self, stream_id: StreamId, after: int) -> AsyncGenerator[list[Frame], None]:
        """The same with live frames in between."""
        return self._follow(stream_id, after, live=True)

    def publish(self, recorded: list[Recorded[Event]]) -> None:
        """Committed events of any streams, each stream's in order. Never waits for a follower."""
        for stream_id, group in groupby(recorded, lambda one: one.stream_id):
            if channel := self._channels.get(stream_id):
                channel.offer(list(group))
            else:
                self._beginnings.keep(list(group))

    def publish_live(self, stream_id: StreamId, frame: LiveFrame) -> None:
        if channel := self._channels.get(stream_id):
            for follower in channel.followers:
                if follower.live:
                    follower.offer([frame])

    def remote(self) -> dict[StreamId, int]:
        """Followed streams that this host does not write, each with the last sequence that was seen of it.

        A stream whose followers all have reading to do is left out: they ask for themselves.
        """
        return {
            stream_id: channel.head
            for stream_id, channel in self._channels.items()
            if stream_id not in self._pens and not all(follower.behind for follower in channel.followers)
        }

    def let_them_read(self, stream_ids: Iterable[StreamId]) -> None:
        """Leave it to each follower of these to ask the database for itself, and to bear what comes of it."""
        for stream_id in stream_ids:
            if channel := self._channels.get(stream_id):
                for follower in channel.followers:
                    follower.fall_behind()

    async def _follow(self, stream_id: StreamId, after: int, live: bool) -> AsyncGenerator[list[Frame], None]:
        follower = Follower(after, live)
        channel = self._join(stream_id, follower)
        try:
            while True:
                frames = (
                    await self._catch_up(stream_id, channel, follower) if follower.behind else follower.take()
                )
                if frames:
                    yield frames
                elif not follower.behind and not follower.buffer:
                    await follower.wait()
        finally:
            self._leave(stream_id, channel, follower)

    async def _catch_up(self, stream_id: StreamId, channel: _Channel, follower: Follower) -> list[Frame]:
        follower.behind = False  # from here on its buffer is filled again, so that nothing falls in between
        recorded, pending = self._beginnings.take(stream_id, follower.position), False
        if not recorded:
            page = await self._reader.read_stream_page(stream_id, follower.position, _PAGE)
            recorded, pending = page.events, page.pending
        if recorded:
            follower.position = recorded[-1].sequence
            follower.behind = follower.behind or pending
            if follower.position > channel.head:
                channel.offer(recorded, source=follower)
        return list(recorded)

    def _join(self, stream_id: StreamId, follower: Follower) -> _Channel:
        channel = self._channels.get(stream_id)
        if channel is None:
            channel = self._channels[stream_id] = _Channel(head=follower.position)
        channel.followers.append(follower)
        self.followed.set()
        return channel

    def _leave(self, stream_id: StreamId, channel: _Channel, follower: Follower) -> None:
        channel.followers.remove(follower)
        if not channel.followers:
            del self._channels[stream_id]
        if not self._channels:
            self.followed.clear()
