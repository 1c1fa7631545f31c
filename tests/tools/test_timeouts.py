"""A body that takes too long is stopped, and one that cannot be stopped is told of. TOOL-1."""

import asyncio
import threading

from app.tools.outcome import ToolError, ToolOutput
from app.tools.threads import ToolThreads
from app.tools.tool import tool
from domain.events import ToolFailure
from tests.tools.calls import Pauses, a_runner, call

TOO_LATE = "slow took longer than 0.01 s"
SOON_S = 0.01


async def test_a_body_that_takes_too_long_is_stopped_and_that_is_the_result() -> None:
    stopped = asyncio.Event()

    @tool(timeout=SOON_S)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    outcome = await call(slow)
    assert isinstance(outcome, ToolError)
    assert (outcome.failure, outcome.text) == (ToolFailure.TIMED_OUT, f"{TOO_LATE} and was stopped.")
    assert outcome.duration_ms >= 10
    assert stopped.is_set()


async def test_a_body_that_was_stopped_may_be_tried_again() -> None:
    pauses, calls = Pauses(), []

    @tool(timeout=SOON_S, retries=1)
    async def slow() -> str:
        calls.append(1)
        if len(calls) == 1:
            await asyncio.Event().wait()
        return "at last"

    outcome = await call(slow, "{}", a_runner(pauses=pauses))
    assert isinstance(outcome, ToolOutput)
    assert outcome.text == "at last"
    assert (len(calls), pauses.after) == (2, [1])


async def test_a_result_that_comes_while_the_body_is_being_stopped_is_kept() -> None:
    """Its effect has happened. To say that it timed out would make the model try again."""

    @tool(timeout=SOON_S)
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "charged"
        return "never"

    outcome = await call(slow)
    assert isinstance(outcome, ToolOutput)
    assert outcome.text == "charged"


async def test_an_error_of_a_body_that_is_being_stopped_is_the_time_out() -> None:
    @tool(timeout=SOON_S)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("clean-up failed")

    outcome = await call(slow)
    assert isinstance(outcome, ToolError)
    assert outcome.text == f"{TOO_LATE} and was stopped."


async def test_a_body_that_does_not_stop_is_left_behind_and_never_tried_again(
    release: asyncio.Event,
) -> None:
    """Two of them would be at it at the same time."""
    calls, ended = [], asyncio.Event()

    @tool(timeout=SOON_S, retries=3)
    async def slow() -> None:
        calls.append(1)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    outcome = await call(slow, "{}", a_runner(grace_s=SOON_S))
    assert isinstance(outcome, ToolError)
    assert outcome.text == f"{TOO_LATE}. It could not be stopped and may have its effect yet."
    assert (outcome.failure, calls) == (ToolFailure.TIMED_OUT, [1])
    release.set()
    await ended.wait()


async def test_a_thread_cannot_be_stopped_and_gives_its_place_to_others(
    release_thread: threading.Event,
) -> None:
    """Otherwise as many stuck bodies as there are places would stop every plain tool of the host."""

    @tool(timeout=SOON_S, retries=3)
    def slow() -> None:
        release_thread.wait(30)

    @tool
    def quick() -> str:
        return "done"

    runner = a_runner(grace_s=SOON_S, threads=ToolThreads(places=1))
    outcome = await call(slow, "{}", runner)
    assert isinstance(outcome, ToolError)
    assert outcome.text == f"{TOO_LATE}. It could not be stopped and may have its effect yet."
    quickly = await call(quick, "{}", runner)
    assert isinstance(quickly, ToolOutput)


async def test_a_call_that_found_no_thread_in_time_never_begins(release_thread: threading.Event) -> None:
    begun, calls = threading.Event(), []

    @tool
    def holds_the_place() -> None:
        begun.set()
        release_thread.wait(30)

    @tool(timeout=SOON_S)
    def slow() -> None:
        calls.append(1)

    runner = a_runner(threads=ToolThreads(places=1))
    holder = asyncio.create_task(call(holds_the_place, "{}", runner))
    await asyncio.to_thread(begun.wait)
    outcome = await call(slow, "{}", runner)
    assert isinstance(outcome, ToolError)
    assert outcome.text == f"{TOO_LATE} and was stopped."
    release_thread.set()
    await holder
    assert calls == []
