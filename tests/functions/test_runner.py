"""Calling workflow functions: on the loop, in threads, stopped, left behind."""

import asyncio
import threading
from typing import Any
from uuid import UUID

import pytest

from app.functions.context import Done, Handoff, WorkflowContext
from app.functions.runner import (
    CancelledItself,
    FunctionFinished,
    FunctionLeftBehind,
    FunctionRunner,
    Returned,
)
from app.settings import CancellationSettings
from app.tools.outcome import UnusableResult
from domain.ids import RunId
from tracon import workflow_function


def context() -> WorkflowContext:
    return WorkflowContext(
        tenant="acme",
        run_id=RunId(UUID(int=1)),
        session_id=None,
        workflow="w",
        node="n",
        attempt=1,
        call_key="k",
        input="the input",
        inputs={},
        outputs={},
    )


def runner(grace: float = 5.0) -> FunctionRunner:
    return FunctionRunner(CancellationSettings(grace=grace))


async def call(function: Any, text: str = "hello") -> Returned:
    return await runner().call(workflow_function(name="f")(function), text, context())


async def test_plain_functions_run_in_threads_and_others_on_the_loop() -> None:
    here = threading.get_ident()

    def plain(text: str) -> str:
        return str(threading.get_ident() == here)

    async def on_the_loop(text: str) -> str:
        return str(threading.get_ident() == here)

    assert (await call(plain)).text == "False"
    assert (await call(on_the_loop)).text == "True"


@pytest.mark.parametrize(
    ("result", "returned"),
    [
        ("text", Returned(text="text")),
        (None, Returned(text="")),
        ({"pages": 2}, Returned(text='{"pages":2}')),
        (Handoff("boss", "over to you"), Returned(text="over to you", handoff_to="boss")),
        (Done("that is all"), Returned(text="that is all", done=True)),
        ("a\0b", Returned(text="a\ufffdb")),
    ],
)
async def test_what_it_returns_is_a_text_and_maybe_a_decision(result: object, returned: Returned) -> None:
    assert await call(lambda: result) == returned


async def test_what_it_raises_is_raised() -> None:
    def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await call(broken)
    with pytest.raises(UnusableResult):
        await call(lambda: {1: object()})


async def test_a_function_that_cancels_itself_has_failed_and_nothing_else_has() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    with pytest.raises(CancelledItself):
        await call(odd)


async def test_a_function_that_is_cancelled_is_stopped_first() -> None:
    """CANCEL-3"""
    reached, stopped = asyncio.Event(), asyncio.Event()

    async def long(text: str) -> str:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return text

    task = asyncio.create_task(call(long))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_one_that_does_not_stop_is_left_behind() -> None:
    """CANCEL-3"""
    reached, let_go = threading.Event(), threading.Event()

    def stubborn(text: str) -> str:
        reached.set()
        let_go.wait()
        return text

    function = workflow_function(name="stubborn")(stubborn)
    task = asyncio.create_task(runner(grace=0.01).call(function, "x", context()))
    await asyncio.to_thread(reached.wait)
    task.cancel()
    with pytest.raises(FunctionLeftBehind):
        await task
    let_go.set()


async def test_one_that_has_its_result_by_then_gives_it() -> None:
    """CANCEL-3"""
    reached, let_go = threading.Event(), threading.Event()

    def finishing(text: str) -> str:
        reached.set()
        let_go.wait()
        return "done"

    task = asyncio.create_task(call(finishing))
    await asyncio.to_thread(reached.wait)
    task.cancel()
    let_go.set()
    with pytest.raises(FunctionFinished) as finished:
        await task
    assert finished.value.returned == Returned(text="done")
