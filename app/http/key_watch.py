"""Streams that are open under a key end when the key does."""

import asyncio
from collections import defaultdict
from contextlib import suppress

from app.http.sse import EventStream, OpenStreams
from app.keys.keyring import Keyring
from domain.errors import Unavailable


class KeyWatch:
    """Asks for each key under which streams are open whether it is still in force.

    The keyring answers from memory for `auth.cache_ttl`: this costs a query per key in that time. Where the
    store cannot be asked, what was open stays open.
    """

    def __init__(self, streams: OpenStreams, keyring: Keyring, pace_s: float) -> None:
        self._streams = streams
        self._keyring = keyring
        self._pace_s = pace_s

    async def run(self) -> None:
        """For as long as the host lives."""
        while True:
            await asyncio.sleep(self._pace_s)
            for prefix, streams in self._by_key().items():
                with suppress(Unavailable):
                    if not await self._keyring.holds(prefix):
                        for stream in streams:
                            stream.forbid()

    def _by_key(self) -> dict[str, list[EventStream]]:
        by_key: dict[str, list[EventStream]] = defaultdict(list)
        for stream in self._streams:
            if stream.key_prefix is not None:
                by_key[stream.key_prefix].append(stream)
        return by_key
