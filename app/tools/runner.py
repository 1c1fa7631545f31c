"""Runs one tool call within its limits. Whatever the tool does, there is a result that a model can read."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

import msgspec

from app.settings import CancellationSettings
from app.tools.arguments import InvalidArguments
from app.tools.body import Body, BodyExited, TaskBody, stopped, words_of
from app.tools.context import ToolContext
from app.tools.outcome import ToolError as ToolError
from app.tools.outcome import ToolOutput as ToolOutput
from app.tools.outcome import UnusableResult, limited, storable, text_of
from app.tools.threads import ToolThreads
from app.tools.tool import Tool
from domain.events import ToolFailure

log = logging.getLogger(__name__)

Outcome = ToolOutput | ToolError
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class ToolLeftBehind(asyncio.CancelledError):
    """The call was cancelled and its body did not stop in time: it may or may not have its effect (CANCEL-3).

    Record the outcome as unknown, then let it propagate: it is the cancellation.
    """


class ToolFinished(asyncio.CancelledError):
    """The call was cancelled, but its body had come to its end. Record `outcome`, then let this propagate."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("the tool finished while it was being cancelled")
        self.outcome = outcome


async def backoff(attempt: int) -> None:
    """Wait before the attempt after this one, so that many callers do not come back together."""
    longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt)
    await asyncio.sleep(random.uniform(longest_s / 2, longest_s))  # noqa: S311 - no secret


async def _nothing() -> None:
    return None


class ToolRunner:
    """One per host. It keeps hold of the bodies that were left behind, until they end by themselves."""

    def __init__(
        self,
        cancellation: CancellationSettings,
        threads: ToolThreads | None = None,
        pause: Callable[[int], Awaitable[None]] = backoff,
    ) -> None:
        self._grace_s = cancellation.grace
        self._threads = threads or ToolThreads()
        self._pause = pause
        self._left_behind: set[asyncio.Future[str]] = set()

    async def run(
        self,
        tool: Tool,
        arguments: str,
        context: ToolContext,
        *,
        before: Callable[[], Awaitable[None]] = _nothing,
    ) -> Outcome:
        """Make the call, again where the tool allows it. Never raises for the tool's fault.

        `before` each attempt the caller may object: what it raises ends the call and is raised here.

        Cancelled, it stops the body first: ToolLeftBehind if that does not heed, ToolFinished if it had ended
        already, else a bare CancelledError.
        """
        began = time.monotonic()
        attempt = 1
        while True:
            await before()
            outcome, may_repeat = await self._attempt(tool, arguments, context)
            if not may_repeat or attempt > tool.retries:
                took_ms = round((time.monotonic() - began) * 1000)
                return msgspec.structs.replace(outcome, duration_ms=took_ms)
            await self._pause(attempt)
            attempt += 1

    async def _attempt(self, tool: Tool, arguments: str, context: ToolContext) -> tuple[Outcome, bool]:
        """What came of it, and whether it may be tried again."""
        body = self._begin(tool, arguments, context)
        try:
            await asyncio.wait({body.done}, timeout=tool.timeout_s)
            if body.done.done():
                return self._outcome(tool, body)
            body.stop()
            await asyncio.wait({body.done}, timeout=self._grace_s)
        except asyncio.CancelledError:
            await self._stop(tool, body)
            raise
        return self._timed_out(tool, body)

    def _begin(self, tool: Tool, arguments: str, context: ToolContext) -> Body:
        if tool.is_async:
            return TaskBody(lambda: _perform_async(tool, arguments, context), self._left_behind)
        return self._threads.start(lambda: _perform(tool, arguments, context))

    async def _stop(self, tool: Tool, body: Body) -> None:
        """The caller was cancelled, and the body must not outlive it unseen."""
        if not await stopped(body, self._grace_s):
            log.warning("tool left behind", extra={"tool": tool.name})
            raise ToolLeftBehind(
                f"{tool.name} did not stop within {self._grace_s:g} s and may have its effect yet"
            )
        if not body.done.cancelled():
            raise ToolFinished(self._outcome(tool, body)[0])

    def _timed_out(self, tool: Tool, body: Body) -> tuple[Outcome, bool]:
        """A late result is a result all the same. A body that still runs is not tried again."""
        late = f"{tool.name} took longer than {tool.timeout_s:g} s"
        if not body.done.done():
            body.leave_behind()
            log.warning("tool timed out and was left behind", extra={"tool": tool.name})
            return _failed(
                ToolFailure.TIMED_OUT, f"{late}. It could not be stopped and may have its effect yet."
            ), False
        if body.done.cancelled() or body.done.exception():
            log.warning("tool timed out", extra={"tool": tool.name})
            return _failed(ToolFailure.TIMED_OUT, f"{late} and was stopped."), True
        return self._outcome(tool, body)

    def _outcome(self, tool: Tool, body: Body) -> tuple[Outcome, bool]:
        if body.done.cancelled():
            return _failed(ToolFailure.RAISED, f"{tool.name} failed: it cancelled itself."), True
        error = body.done.exception()
        if error is None:
            text, truncated = limited(body.done.result(), tool.output_limit)
            return ToolOutput(text=text, truncated=truncated), False
        if isinstance(error, InvalidArguments):
            return _failed(ToolFailure.INVALID_ARGUMENTS, f"{tool.name} was not called. {error}"), False
        log.warning("tool raised", extra={"tool": tool.name}, exc_info=error)
        text, _ = limited(f"{tool.name} failed: {_told(error)}", tool.output_limit)
        return _failed(ToolFailure.RAISED, text), not isinstance(error, UnusableResult)


def _perform(tool: Tool, arguments: str, context: ToolContext) -> str:
    return text_of(tool.function(**tool.keywords(arguments, context)))


async def _perform_async(tool: Tool, arguments: str, context: ToolContext) -> str:
    return text_of(await tool.function(**tool.keywords(arguments, context)))


def _failed(failure: ToolFailure, text: str) -> ToolError:
    return ToolError(failure=failure, text=text)


def _told(error: BaseException) -> str:
    """The error's own words and no more."""
    ours = isinstance(error, UnusableResult | BodyExited)
    return storable(str(error) if ours else words_of(error))
