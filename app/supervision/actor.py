"""An actor: one task, one mailbox. A message interrupts whatever the actor is waiting for."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

M = TypeVar("M")


class Interrupted(Exception):
    """There is mail. Raised where the interruptible block ends, after everything in it has unwound."""


class Actor(Generic[M]):
    """Subclasses do their work in `run`, inside `interruptible`, and read `mail` when Interrupted comes out.

    Telling is synchronous and never blocks. The interruption is an ordinary task cancellation, so a model
    call's connection is closed and a tool's task is cancelled on the way out; it is told apart from the
    task's own cancellation by the count that asyncio keeps for that purpose.
    """

    def __init__(self) -> None:
        self.mail: list[M] = []
        self._task: asyncio.Task[object] | None = None
        self._interrupting = False

    def tell(self, message: M) -> None:
        """Deliver a message; interrupt the actor if it is in an interruptible block."""
        self.mail.append(message)
        if self._task is not None and not self._interrupting:
            self._interrupting = True
            self._task.cancel()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Everything awaited in here ends early when a message comes."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an actor runs in a task")
        if self.mail:
            raise Interrupted
        already = task.cancelling()
        self._task, self._interrupting = task, False
        try:
            yield
        except asyncio.CancelledError:
            if self._interrupting and task.uncancel() <= already:
                raise Interrupted from None
            raise
        except BaseException:
            if self._interrupting:
                task.uncancel()  # what broke the block came first; the mail is still there to read
            raise
        finally:
            self._task = None
