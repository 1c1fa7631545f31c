"""A log to follow, and quick projectors."""

from collections.abc import AsyncIterator
from functools import partial

import asyncpg
import pytest

from app.db.pool import connect
from app.store.event_log import EventLog
from projections.projector import Pace


@pytest.fixture
async def log(database: str, pool: asyncpg.Pool) -> AsyncIterator[EventLog]:
    dedicated = partial(connect, database)
    async with EventLog(pool, dedicated, listen=dedicated) as opened:
        yield opened


@pytest.fixture
def quick() -> Pace:
    """Looks again at once, so that a test waits for what happens and not for the clock."""
    return Pace(breath_s=0.0, gather_s=0.0, poll_s=0.05, standby_s=0.01, longest_pause_s=0.02)
