"""Reading what a run cannot go on without, while the store may be away for a moment."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.clock import elapsed_s
from app.db.errors import StoreUnavailable

T = TypeVar("T")


async def patiently(read: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """Read again while the store is away, for so long; then raise StoreUnavailable (EVENT-8)."""
    asked_at = elapsed_s()
    while True:
        try:
            return await read()
        except StoreUnavailable:
            if elapsed_s() - asked_at > patience_s:
                raise
        await asyncio.sleep(random.uniform(0.05, 0.25))  # noqa: S311 - jitter, not a secret
