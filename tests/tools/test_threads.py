"""Plain functions share a bounded number of threads, and none of these keeps the process alive."""

import asyncio
import subprocess
import sys
import threading
from textwrap import dedent

import pytest

from app.tools.threads import ToolThreads
from tests.tools.calls import tool_threads_end

A_STUCK_TOOL = """
    import asyncio, threading
    from app.settings import CancellationSettings
    from app.tools.runner import ToolRunner
    from app.tools.tool import tool
    from tests.tools.calls import CONTEXT

    @tool(timeout=0.01)
    def in_a_thread() -> None:
        threading.Event().wait()

    @tool(timeout=0.01)
    async def on_the_loop() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        outcome = await ToolRunner(CancellationSettings(grace=0.01)).run(STUCK, "{}", CONTEXT)
        print(outcome.failure)

    asyncio.run(main())
"""


@pytest.mark.parametrize("stuck", ["in_a_thread", "on_the_loop"])
def test_a_stuck_body_does_not_keep_the_process_alive(stuck: str) -> None:
    program = dedent(A_STUCK_TOOL).replace("STUCK", stuck)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout == "timed_out\n"


async def test_no_more_calls_run_at_a_time_than_there_are_places() -> None:
    threads, lock, meeting = ToolThreads(places=2), threading.Lock(), threading.Barrier(2, timeout=30)
    running, most = 0, 0

    def body() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait()  # with fewer than two at a time nobody gets past this
        with lock:
            running -= 1
        return "done"

    bodies = [threads.start(body) for _ in range(6)]
    assert await asyncio.gather(*(body.done for body in bodies)) == ["done"] * 6
    assert most == 2


async def test_the_waiting_begin_in_the_order_they_came() -> None:
    threads, order = ToolThreads(places=1), []

    def body(number: int) -> str:
        order.append(number)
        return ""

    bodies = [threads.start(lambda number=number: body(number)) for number in range(5)]  # type: ignore[misc]
    await asyncio.gather(*(body.done for body in bodies))
    assert order == [0, 1, 2, 3, 4]


async def test_there_is_an_end_to_the_threads_that_stuck_bodies_may_hold(
    release_thread: threading.Event,
) -> None:
    threads = ToolThreads(places=1, stuck=1)

    def stuck() -> str:
        release_thread.wait(30)
        return ""

    first, second, third = (threads.start(stuck) for _ in range(3))
    threads.leave_behind(first)
    assert second.begun
    threads.leave_behind(second)
    assert not third.begun
    release_thread.set()
    assert await third.done == ""


async def test_a_stuck_body_that_ends_after_all_gives_its_allowance_back(
    release_thread: threading.Event,
) -> None:
    threads = ToolThreads(places=1, stuck=1)

    def stuck() -> str:
        release_thread.wait(30)
        return ""

    for _ in range(3):
        release_thread.clear()
        body = threads.start(stuck)
        assert body.begun
        threads.leave_behind(body)
        assert await threads.start(lambda: "the next").done == "the next"
        release_thread.set()
        await asyncio.to_thread(tool_threads_end)


async def test_a_system_without_threads_is_a_failure_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    body = ToolThreads(places=1).start(lambda: "")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        await body.done


def test_a_thread_that_outlives_its_loop_ends_quietly(release_thread: threading.Event) -> None:
    ended = threading.Event()

    def body() -> str:
        release_thread.wait(30)
        ended.set()
        return ""

    async def begin() -> None:
        ToolThreads().start(body)

    asyncio.run(begin())
    release_thread.set()
    assert ended.wait(30)
    tool_threads_end()
