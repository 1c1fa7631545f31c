"""How many requests a tenant may send to this host: a bucket of tokens for each, refilled with time."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from app.settings import RateLimitSettings


class _Bucket(NamedTuple):
    tokens: float
    at: float


class RateLimiter:
    """Off unless a rate is set. There are as many buckets as there are tenants with keys."""

    def __init__(self, settings: RateLimitSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = settings.requests_per_second
        self._size = float(settings.burst or max(1, math.ceil(self._rate or 0)))
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, tenant: str) -> float:
        """0 for a request that may pass, and its token is gone; otherwise the seconds until there is one."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        bucket = self._buckets.get(tenant) or _Bucket(self._size, now)
        tokens = min(self._size, bucket.tokens + (now - bucket.at) * self._rate)
        passes = tokens >= 1
        self._buckets[tenant] = _Bucket(tokens - 1 if passes else tokens, now)
        return 0.0 if passes else (1 - tokens) / self._rate
