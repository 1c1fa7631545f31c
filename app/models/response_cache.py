"""Replies that may be given again to the very same request, for agents that ask for it."""

import hashlib
import time
from collections.abc import Callable

import msgspec
from cachetools import TTLCache

from app.models.port import ModelReply, ModelRequest
from app.settings import ResponseCacheSettings

_encoder = msgspec.msgpack.Encoder(order="deterministic")


class _Key(msgspec.Struct, frozen=True, array_like=True):
    """All that a reply depends on (BREAK-3). The tenant is part of it: nothing is shared across."""

    tenant: str
    provider: str
    request: ModelRequest


def cache_key(tenant: str, provider: str, request: ModelRequest) -> bytes:
    """Equal for requests that would be equal on the wire. Time limits do not count."""
    bare = msgspec.structs.replace(request, first_content_timeout_s=None)
    return hashlib.sha256(_encoder.encode(_Key(tenant, provider, bare))).digest()


class ResponseCache:
    """The most recent replies of this host, each for a while."""

    def __init__(self, settings: ResponseCacheSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._replies: TTLCache[bytes, ModelReply] = TTLCache(settings.max_entries, settings.ttl, timer=clock)

    def find(self, key: bytes) -> ModelReply | None:
        return self._replies.get(key)

    def keep(self, key: bytes, reply: ModelReply) -> None:
        self._replies[key] = reply
