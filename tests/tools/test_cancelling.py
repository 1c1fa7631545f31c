"""Cancelling a call: its body is cancelled, given its grace, and left behind if need be. CANCEL-3."""

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from app.tools.outcome import ToolError, ToolOutput
from app.tools.runner import ToolFinished, ToolLeftBehind
from app.tools.threads import ToolThreads
from app.tools.tool import tool
from domain.events import ToolFailure
from tests.tools.calls import a_runner, begun, tool_threads_end

SOON_S = 0.01
NEVER_S = 3600.0


class Unheard:
    """What the event loop would complain about."""

    def __init__(self) -> None:
        self.complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.complaints.append(context))


async def test_a_body_is_cancelled_with_its_call_and_before_it() -> None:
    """CANCEL-3: cancel is delivered to the tool."""
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # a body may need the loop to clean up
            stopped.set()

    running = begun(slow)
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await running
    assert type(cancelled.value) is asyncio.CancelledError
    assert stopped.is_set()


async def test_a_call_that_is_cancelled_before_it_began_runs_nothing() -> None:
    calls = []

    @tool
    async def body() -> None:
        calls.append(1)

    running = begun(body)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert calls == []


async def test_a_body_that_does_not_stop_within_the_grace_is_left_behind(release: asyncio.Event) -> None:
    """CANCEL-3: the call's outcome is unknown; what becomes of it later disturbs nobody."""
    unheard, started = Unheard(), asyncio.Event()
    bodies: list[asyncio.Task[Any] | None] = []

    @tool
    async def stubborn() -> None:
        bodies.append(asyncio.current_task())
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("nobody asked")

    running = begun(stubborn, a_runner(grace_s=SOON_S))
    await started.wait()
    running.cancel()
    with pytest.raises(ToolLeftBehind, match=r"stubborn did not stop within 0\.01 s and may have its effect"):
        await running
    assert running.cancelled()
    release.set()
    await asyncio.wait([body for body in bodies if body])
    bodies.clear()
    assert unheard.complaints == []


async def test_a_body_that_was_left_behind_lives_on_though_nobody_else_holds_it() -> None:
    """CANCEL-3: it may have its effect yet. The garbage collector does not decide that."""
    unheard, started, ended = Unheard(), asyncio.Event(), asyncio.Event()
    waited_for: list[weakref.ref[asyncio.Event]] = []

    @tool
    async def stubborn() -> None:
        own = asyncio.Event()
        waited_for.append(weakref.ref(own))
        started.set()
        while not own.is_set():
            try:
                await own.wait()
            except asyncio.CancelledError:
                continue
        ended.set()

    runner = a_runner(grace_s=SOON_S)
    running = begun(stubborn, runner)
    await started.wait()
    running.cancel()
    with pytest.raises(ToolLeftBehind):
        await running
    del running
    await asyncio.sleep(0)  # the loop itself lets go of the cancelled call
    gc.collect()
    (own,) = (ref() for ref in waited_for)
    assert own is not None
    own.set()
    await ended.wait()
    assert unheard.complaints == []


async def test_what_a_body_finished_while_it_was_cancelled_is_not_lost() -> None:
    """CANCEL-3: what a finished tool did stays recorded."""
    started = asyncio.Event()

    @tool
    async def charge() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "charged"
        return "never"

    running = begun(charge)
    await started.wait()
    running.cancel()
    with pytest.raises(ToolFinished) as finished:
        await running
    assert finished.value.outcome == ToolOutput(text="charged")
    assert running.cancelled()


async def test_a_result_that_came_in_the_same_moment_as_the_cancel_is_not_lost(
    release: asyncio.Event,
) -> None:
    """CANCEL-3: what a finished tool did stays recorded."""

    @tool
    async def charge() -> str:
        await release.wait()
        asyncio.get_running_loop().call_soon(running.cancel)
        return "charged"

    running = begun(charge)
    asyncio.get_running_loop().call_soon(release.set)
    with pytest.raises(ToolFinished) as finished:
        await running
    assert finished.value.outcome == ToolOutput(text="charged")


async def test_an_error_of_a_cancelled_body_is_what_came_of_it() -> None:
    started = asyncio.Event()

    @tool
    async def body() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("half done") from None

    running = begun(body)
    await started.wait()
    running.cancel()
    with pytest.raises(ToolFinished) as finished:
        await running
    assert finished.value.outcome == ToolError(
        failure=ToolFailure.RAISED, text="body failed: RuntimeError: half done"
    )


async def test_a_second_cancel_ends_the_grace(release: asyncio.Event) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                cancelled.set()

    running = begun(stubborn, a_runner(grace_s=NEVER_S))
    await started.wait()
    running.cancel()
    await cancelled.wait()
    running.cancel()
    with pytest.raises(ToolLeftBehind):
        await running


async def test_a_cancel_during_the_grace_of_a_time_out_leaves_no_body_unseen(release: asyncio.Event) -> None:
    cancelled = asyncio.Event()

    @tool(timeout=SOON_S)
    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                cancelled.set()

    running = begun(stubborn, a_runner(grace_s=0.05))
    await cancelled.wait()
    running.cancel()
    with pytest.raises(ToolLeftBehind):
        await running


async def test_a_thread_that_ends_within_the_grace_has_its_result(release_thread: threading.Event) -> None:
    started = threading.Event()

    @tool
    def charge() -> str:
        started.set()
        assert release_thread.wait(30)
        return "charged"

    running = begun(charge)
    await asyncio.to_thread(started.wait)
    running.cancel()
    asyncio.get_running_loop().call_soon(release_thread.set)
    with pytest.raises(ToolFinished) as finished:
        await running
    assert isinstance(finished.value.outcome, ToolOutput)


@pytest.mark.parametrize("stuck", [0, 1])
async def test_a_thread_that_does_not_end_is_left_behind(stuck: int, release_thread: threading.Event) -> None:
    """Also when too many are stuck already, and it keeps its place."""
    unheard, started = Unheard(), threading.Event()

    @tool
    def stubborn() -> None:
        started.set()
        assert release_thread.wait(30)
        raise RuntimeError("nobody asked")

    running = begun(stubborn, a_runner(grace_s=SOON_S, threads=ToolThreads(places=1, stuck=stuck)))
    await asyncio.to_thread(started.wait)
    running.cancel()
    with pytest.raises(ToolLeftBehind):
        await running
    release_thread.set()
    await asyncio.to_thread(tool_threads_end)
    gc.collect()
    assert unheard.complaints == []


async def test_a_waiting_call_that_is_cancelled_never_begins(release_thread: threading.Event) -> None:
    started, calls = threading.Event(), []

    @tool
    def holds_the_place() -> None:
        started.set()
        assert release_thread.wait(30)

    @tool
    def waits() -> None:
        calls.append(1)

    runner = a_runner(threads=ToolThreads(places=1))
    holder = begun(holds_the_place, runner)
    await asyncio.to_thread(started.wait)
    waiting = begun(waits, runner)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await waiting
    assert type(cancelled.value) is asyncio.CancelledError
    release_thread.set()
    await holder
    assert calls == []
