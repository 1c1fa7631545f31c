"""Threads for tools that are plain functions. None of them can keep the process alive."""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from app.tools.body import as_exception

Call = Callable[[], str]


class ThreadBody:
    """One call of a plain function. Before it has begun, `stop` takes it back; then nothing stops it."""

    def __init__(self, threads: "ToolThreads", call: Call) -> None:
        self.done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.call = call
        self.begun = False
        self.has_place = False
        self.is_awaited = True
        self._threads = threads

    def stop(self) -> None:
        if not self.begun:
            self.done.cancel()

    def leave_behind(self) -> None:
        self._threads.leave_behind(self)


class ToolThreads:
    """At most `places` calls run at a time, the others wait their turn. Used from one event loop.

    A call that is left behind gives up its place, so that stuck bodies do not block well ones. No more than
    `stuck` of them do, so that there is an end to the threads.
    """

    def __init__(self, places: int = 64, stuck: int = 256) -> None:
        self._places = places
        self._spare = stuck
        self._waiting: deque[ThreadBody] = deque()

    def start(self, call: Call) -> ThreadBody:
        """Run the call as soon as there is a place, in the caller's context."""
        body = ThreadBody(self, call)
        self._waiting.append(body)
        self._begin_waiting()
        return body

    def leave_behind(self, body: ThreadBody) -> None:
        """Nobody awaits this body any more."""
        body.is_awaited = False
        if self._spare and body.has_place:
            self._spare -= 1
            self._give_up_place(body)

    def _begin_waiting(self) -> None:
        while self._places and self._waiting:
            body = self._waiting.popleft()
            if not body.done.cancelled():
                self._begin(body)

    def _begin(self, body: ThreadBody) -> None:
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._perform, loop, body), name="tool", daemon=True
        )
        self._places -= 1
        body.begun = body.has_place = True
        try:
            thread.start()
        except RuntimeError as error:  # the system gives no more threads
            self._ended(body, error)

    def _perform(self, loop: asyncio.AbstractEventLoop, body: ThreadBody) -> None:
        outcome: str | BaseException
        try:
            outcome = body.call()
        except BaseException as error:  # noqa: BLE001 - a thread has no caller: whatever it was is told to the loop
            outcome = error
        with suppress(RuntimeError):  # the loop is closed, and nobody asks any more
            loop.call_soon_threadsafe(self._ended, body, outcome)

    def _ended(self, body: ThreadBody, outcome: str | BaseException) -> None:
        if body.has_place:
            self._give_up_place(body)
        else:
            self._spare += 1
        if body.done.done() or not body.is_awaited:
            return
        if isinstance(outcome, str):
            body.done.set_result(outcome)
        else:
            body.done.set_exception(as_exception(outcome))

    def _give_up_place(self, body: ThreadBody) -> None:
        body.has_place = False
        self._places += 1
        self._begin_waiting()
