"""A running tool body, on the event loop or in a thread, that can be stopped or left behind."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

log = logging.getLogger(__name__)


class BodyExited(Exception):
    """A body tried to end more than itself: its thread, or the process."""


class Body(Protocol):
    """`done` has the result's text, or what the body raised."""

    @property
    def done(self) -> asyncio.Future[str]: ...

    def stop(self) -> None:
        """Ask the body to stop. It may not heed."""
        ...

    def leave_behind(self) -> None:
        """Nobody will look at `done` again, whatever comes of it."""
        ...


class TaskBody:
    """A body on the event loop, in a task of its own."""

    def __init__(self, call: Callable[[], Awaitable[str]], left_behind: set[asyncio.Future[str]]) -> None:
        self.done = asyncio.create_task(_contained(call), name="tool")
        self._left_behind = left_behind

    def stop(self) -> None:
        self.done.cancel()

    def leave_behind(self) -> None:
        self._left_behind.add(self.done)  # the loop by itself does not keep a task alive
        self.done.add_done_callback(self._forget)
        # The end of a loop waits for all tasks that it knows, and this one may never end.
        asyncio._unregister_task(self.done)

    def _forget(self, done: asyncio.Future[str]) -> None:
        self._left_behind.discard(done)
        if not done.cancelled():
            done.exception()  # or its loss would be logged as an oversight


async def stopped(body: Body, grace_s: float) -> bool:
    """Whether the body ends within the grace when it is told to stop. If not, it is left behind.

    For the one who was cancelled in waiting for it; being cancelled again ends the grace.
    """
    body.stop()
    try:
        await asyncio.wait({body.done}, timeout=grace_s)
    except asyncio.CancelledError:
        log.debug("cancelled again; the grace is over")
    if not body.done.done():
        body.leave_behind()
        return False
    return True


async def _contained(call: Callable[[], Awaitable[str]]) -> str:
    try:
        return await call()
    except (KeyboardInterrupt, SystemExit) as error:  # the event loop would obey
        raise as_exception(error) from error


def as_exception(error: BaseException) -> Exception:
    """What a future may hold: it takes no StopIteration, and the event loop would obey an order to exit."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    exited = BodyExited(words_of(error))
    exited.__cause__ = error
    return exited


def words_of(error: BaseException) -> str:
    """The error's kind and words. It is somebody else's class: to ask it for words may do anything."""
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except BaseException:  # noqa: BLE001 - a crash of the tool's own error
        return kind
