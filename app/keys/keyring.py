"""The keys that a host has seen lately, so that a request is let in without asking the database."""

import asyncio
from collections.abc import Awaitable, Callable

from cachetools import TLRUCache

from app.clock import elapsed_s
from app.keys.key import UsableKey, prefix_of

MOST = 10_000
"""Keys that are remembered, and prefixes that are no key's."""


class Keyring:
    """What the database said of a key holds for `ttl_s`, and never past the key's own end.

    So a revocation acts on every host within that time, without a word between hosts. Requests that come with
    one key while the database is being asked wait for one answer.
    """

    def __init__(
        self,
        ask: Callable[[str], Awaitable[UsableKey | None]],
        ttl_s: float,
        clock: Callable[[], float] = elapsed_s,
    ) -> None:
        self._ask = ask
        self._ttl_s = ttl_s
        self._known: TLRUCache[str, UsableKey] = TLRUCache(MOST, self._holds_until, timer=clock)
        self._unknown: TLRUCache[str, None] = TLRUCache(MOST, lambda _, __, now: now + ttl_s, timer=clock)
        self._asking: dict[str, asyncio.Task[UsableKey | None]] = {}

    async def find(self, secret: str) -> UsableKey | None:
        """The key that this secret opens. Raise StoreUnavailable where that cannot be known now."""
        prefix = prefix_of(secret)
        if prefix is None:
            return None
        key = self._known.get(prefix) or await self._asked(prefix)
        return key if key is not None and key.opens(secret) else None

    async def holds(self, prefix: str) -> bool:
        """Whether the key that begins like this is in force. Raise StoreUnavailable as `find` does."""
        return (self._known.get(prefix) or await self._asked(prefix)) is not None

    def forget(self, prefix: str) -> None:
        """Ask again the next time."""
        self._known.pop(prefix, None)

    async def _asked(self, prefix: str) -> UsableKey | None:
        if prefix in self._unknown:
            return None
        asking = self._asking.get(prefix)
        if asking is None:
            asking = self._asking[prefix] = asyncio.create_task(self._learn(prefix))
            asking.add_done_callback(_heard)
        # Whoever hangs up leaves the question to the others.
        return await asyncio.shield(asking)

    async def _learn(self, prefix: str) -> UsableKey | None:
        try:
            key = await self._ask(prefix)
        finally:
            del self._asking[prefix]
        if key is None:
            self._unknown[prefix] = None
        else:
            self._known[prefix] = key
        return key

    def _holds_until(self, _: str, key: UsableKey, now: float) -> float:
        left_s = self._ttl_s if key.expires_in_s is None else min(self._ttl_s, key.expires_in_s)
        return now + left_s


def _heard(asking: asyncio.Task[UsableKey | None]) -> None:
    """A failure that everybody had left before is nobody's failure."""
    if not asking.cancelled():
        asking.exception()
