"""Calls a workflow function, on the event loop or in a thread, and stops it or leaves it behind."""

import asyncio
import logging

import msgspec

from app.functions.context import Done, Handoff, WorkflowContext
from app.functions.function import WorkflowFunction
from app.settings import CancellationSettings
from app.tools.body import Body, TaskBody, stopped
from app.tools.outcome import storable, text_of
from app.tools.threads import ToolThreads

log = logging.getLogger(__name__)


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """What a function came to: a text, and what it decided."""

    text: str
    handoff_to: str | None = None
    done: bool = False


class CancelledItself(Exception):
    """The function ended as if it had been cancelled, and nobody had asked for that."""


class FunctionLeftBehind(asyncio.CancelledError):
    """The call was cancelled and its body did not stop in time: it may or may not have its effect (CANCEL-3).

    Record the outcome as unknown, then let it propagate: it is the cancellation.
    """


class FunctionFinished(asyncio.CancelledError):
    """The call was cancelled, but its body had come to its end. Record it, then let this propagate."""

    def __init__(self, returned: Returned) -> None:
        super().__init__("the function finished while it was being cancelled")
        self.returned = returned


class FunctionRunner:
    """One per host. It keeps hold of the bodies that were left behind, until they end by themselves."""

    def __init__(self, cancellation: CancellationSettings) -> None:
        self._grace_s = cancellation.grace
        self._threads = ToolThreads()
        self._left_behind: set[asyncio.Future[str]] = set()

    async def call(self, function: WorkflowFunction, text: str, context: WorkflowContext) -> Returned:
        """What the function returned. Raise what it raised, UnusableResult, or CancelledItself.

        Cancelled, it stops the body first: FunctionLeftBehind if that does not heed, FunctionFinished if it
        had its result already, else a bare CancelledError.
        """
        returned: list[Returned] = []
        body = self._begin(function, text, context, returned)
        try:
            await asyncio.wait({body.done})
        except asyncio.CancelledError:
            await self._stop(function, body, returned)
            raise
        if body.done.cancelled():
            raise CancelledItself("it cancelled itself")
        body.done.result()
        return returned[0]

    def _begin(
        self, function: WorkflowFunction, text: str, context: WorkflowContext, returned: list[Returned]
    ) -> Body:
        def kept(result: object) -> str:
            returned.append(_read(result))
            return ""

        if not function.is_async:
            return self._threads.start(lambda: kept(function(**function.keywords(text, context))))

        async def call() -> str:
            return kept(await function(**function.keywords(text, context)))

        return TaskBody(call, self._left_behind)

    async def _stop(self, function: WorkflowFunction, body: Body, returned: list[Returned]) -> None:
        if not await stopped(body, self._grace_s):
            log.warning("function left behind", extra={"function": function.name})
            raise FunctionLeftBehind(
                f"{function.name} did not stop within {self._grace_s:g} s and may have its effect yet"
            )
        if not body.done.cancelled() and body.done.exception() is None:
            raise FunctionFinished(returned[0])


def _read(result: object) -> Returned:
    """Raise UnusableResult for what is no text and cannot be written as JSON."""
    match result:
        case Handoff(to=to, text=text):
            return Returned(text=storable(text), handoff_to=to)
        case Done(text=text):
            return Returned(text=storable(text), done=True)
        case None:
            return Returned(text="")
        case _:
            return Returned(text=text_of(result))
