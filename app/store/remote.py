"""Following streams that other hosts write: one query for all of them."""

import asyncio

from app.db.errors import StoreUnavailable
from app.store.feed import Feed
from app.store.reader import Reader
from app.store.wakeups import POLL_S, Wakeups
from domain.codec import UnknownTopic, UnreadableEvent

_PER_STREAM = 100
_INTERVAL_S = 0.05


class RemoteStreams:
    """Looks when another host has news, and every second; not at all while nobody follows such a stream."""

    def __init__(self, reader: Reader, feed: Feed, wakeups: Wakeups) -> None:
        self._reader = reader
        self._feed = feed
        self._wakeups = wakeups

    async def run(self) -> None:
        with self._wakeups.bell(foreign_only=True) as bell:
            while True:
                await self._feed.followed.wait()
                bell.silence()
                await self._look()
                await asyncio.sleep(_INTERVAL_S)  # hints come in swarms
                await bell.wait(POLL_S)

    async def _look(self) -> None:
        while wanted := self._feed.remote():
            try:
                recorded = await self._reader.read_streams(wanted, _PER_STREAM)
            except StoreUnavailable:
                return  # followers can wait, and the writer tells of the outage
            except (UnknownTopic, UnreadableEvent):
                self._feed.let_them_read(wanted)
                return
            self._feed.publish(recorded)
            if len(recorded) < _PER_STREAM:
                return
