"""Questions to the database that must be answered soon or not at all."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from app.db.errors import StoreUnavailable

T = TypeVar("T")

_left_behind: set[asyncio.Task[Any]] = set()


async def answered_within(seconds: float, asking: Coroutine[Any, Any, T]) -> T:
    """The answer, or what the question raised; StoreUnavailable if neither comes in time.

    A query that is cancelled holds its connection until the server has heard of that, and a server that hangs
    never hears. So nobody waits for such a query: it is left behind, to end when it can.
    """
    task = asyncio.create_task(asking)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            _leave_behind(task)
    if not task.done():
        raise StoreUnavailable(f"Postgres did not answer within {seconds:.3g} s")
    return task.result()


def _leave_behind(task: asyncio.Task[Any]) -> None:
    task.cancel()
    _left_behind.add(task)  # the loop by itself does not keep a task alive
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # nobody wants to know any more
