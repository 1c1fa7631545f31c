"""Events that stuck bodies wait for. They are set when a test is over, however it ends."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest


@pytest.fixture
async def release() -> AsyncIterator[asyncio.Event]:
    """For bodies on the loop."""
    event = asyncio.Event()
    yield event
    event.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


@pytest.fixture
def release_thread() -> Iterator[threading.Event]:
    """For bodies in threads."""
    event = threading.Event()
    yield event
    event.set()
