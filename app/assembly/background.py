"""The tasks that a host runs in the background, from when each is started until the host has closed."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any


class Background:
    """None of the tasks ends by itself while the host serves: one that does takes the host with it."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """It is cancelled before whatever was opened earlier is closed."""
        task = asyncio.create_task(work, name=name)
        self.tasks.append(task)
        self._stack.push_async_callback(_cancelled, task)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
