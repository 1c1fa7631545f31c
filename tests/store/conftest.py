"""An event log on the test's own database, as a host would have it."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.db.pool import connect
from app.store.event_log import EventLog
from tests.store.proxy import Proxy, proxied
from tests.store.samples import change, stream
from tests.store.slow_writer import SlowWriter

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


@pytest.fixture
def slow(database: str) -> SlowWriter:
    return SlowWriter(database)


@pytest.fixture
async def proxy(database: str) -> AsyncIterator[Proxy]:
    """A breakable way to the database, in a folder of its own because the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="tracon-") as folder:
        async with proxied(Path(folder), database) as opened:
            yield opened


@pytest.fixture
async def frail(proxy: Proxy, open_log: OpenLog) -> EventLog:
    """A log whose writer goes through the proxy. It is warm: its next request is an append and no more."""
    opened: EventLog = await open_log(connect=proxy.connect)
    await opened.append(change(stream(), 0, "warm"))
    return opened
