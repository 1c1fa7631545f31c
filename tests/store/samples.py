"""Events and streams to write."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

from app.store.event_log import Change
from domain.events import Event, Recorded, TextDelta
from domain.ids import DEFAULT_TENANT, StreamId, Version

PATIENCE_S = 10.0
"""How long a test waits for what must come."""


def stream() -> StreamId:
    return StreamId(uuid4())


def said(text: str) -> TextDelta:
    return TextDelta(step=1, text=text)


def change(stream_id: StreamId, expected: int, *texts: str, tenant: str = DEFAULT_TENANT) -> Change:
    return Change(
        stream_id=stream_id, expected=Version(expected), tenant=tenant, events=tuple(map(said, texts))
    )


def texts(recorded: list[Recorded[Event]]) -> list[str]:
    return [one.event.text for one in recorded if isinstance(one.event, TextDelta)]


async def collect(pages: AsyncIterator[list[Recorded[Event]]], count: int) -> list[Recorded[Event]]:
    """The first `count` events."""
    found: list[Recorded[Event]] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            found += await anext(pages)
    return found


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something of the server's that cannot be subscribed to."""
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(0.002)
