"""An event log on the test's own database, as a host would have it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import asyncpg
import pytest

from app.db.pool import connect
from app.store.event_log import EventLog

OpenLog = Callable[..., Any]


@pytest.fixture
async def open_log(database: str, pool: asyncpg.Pool) -> AsyncIterator[OpenLog]:
    """Open any number of logs, each a host of its own; all are closed in the end."""
    async with AsyncExitStack() as stack:

        async def opened(**options: Any) -> EventLog:
            dedicated = partial(connect, database)
            log = EventLog(pool, **({"connect": dedicated, "listen": dedicated} | options))
            return await stack.enter_async_context(log)

        yield opened


@pytest.fixture
async def log(open_log: OpenLog) -> EventLog:
    opened: EventLog = await open_log()
    return opened
