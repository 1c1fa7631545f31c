"""One call of a tool: its result, its failures and its limits. TOOL-1."""

import asyncio
import logging
import os
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from app.tools.context import ToolContext
from app.tools.outcome import ToolError, ToolOutput
from app.tools.tool import tool
from domain.events import ToolFailure
from tests.tools.calls import CONTEXT, Pauses, a_runner, call

WHO: ContextVar[str] = ContextVar("who", default="nobody")


def failure(outcome: ToolOutput | ToolError) -> tuple[ToolFailure, str]:
    assert isinstance(outcome, ToolError)
    return outcome.failure, outcome.text


def text(outcome: ToolOutput | ToolError) -> str:
    assert isinstance(outcome, ToolOutput)
    return outcome.text


async def test_an_async_function_runs_on_the_loop() -> None:
    @tool
    async def add(a: int, b: int = 2) -> dict[str, Any]:
        return {"sum": a + b, "thread": threading.current_thread() is threading.main_thread()}

    assert text(await call(add, '{"a": 1}')) == '{"sum":3,"thread":true}'


async def test_a_plain_function_runs_in_a_thread_and_leaves_the_loop_free() -> None:
    loop_goes_on = threading.Event()

    @tool
    def wait() -> str:
        assert loop_goes_on.wait(10)
        return threading.current_thread().name

    running = asyncio.create_task(call(wait))
    asyncio.get_running_loop().call_soon(loop_goes_on.set)
    assert text(await running) == "tool"


async def test_a_tool_gets_its_context_and_the_callers_context_variables() -> None:
    @tool
    def plain(ctx: ToolContext) -> list[Any]:
        return [ctx.tenant, ctx.run_id, ctx.session_id, ctx.call_id, ctx.call_key, ctx.deadline, WHO.get()]

    @tool
    async def on_the_loop(ctx: ToolContext) -> list[Any]:
        return [ctx.tenant, ctx.run_id, ctx.session_id, ctx.call_id, ctx.call_key, ctx.deadline, WHO.get()]

    WHO.set("me")
    told = f'["default","{CONTEXT.run_id}","s-1","call-1","tk_1","2030-01-01T00:00:00Z","me"]'
    assert text(await call(plain)) == told
    assert text(await call(on_the_loop)) == told


async def test_arguments_that_do_not_fit_never_reach_the_body_and_are_not_tried_again() -> None:
    pauses, calls = Pauses(), []

    @tool(retries=3)
    async def charge(cents: int) -> None:
        calls.append(cents)

    outcome = await call(charge, '{"cents": "5"}', a_runner(pauses=pauses))
    assert failure(outcome) == (
        ToolFailure.INVALID_ARGUMENTS,
        "charge was not called. The arguments do not fit: expected 'int', got 'str' at '.cents'."
        " Known arguments: cents.",
    )
    assert (calls, pauses.after) == ([], [])


async def test_an_exception_is_a_result_with_its_own_words_and_no_more() -> None:
    @tool
    async def look_up() -> None:
        try:
            os.environ["A_SECRET_NAME"]
        except KeyError as error:
            raise LookupError("there is no order 7") from error

    @tool
    def look_up_in_a_thread() -> None:
        raise LookupError("there is no order 7")

    raised = ToolFailure.RAISED
    assert failure(await call(look_up)) == (raised, "look_up failed: LookupError: there is no order 7")
    assert failure(await call(look_up_in_a_thread)) == (
        raised,
        "look_up_in_a_thread failed: LookupError: there is no order 7",
    )


async def test_the_operators_log_has_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def broken() -> None:
        raise ZeroDivisionError("by zero")

    await call(broken)
    (record,) = (record for record in caplog.records if record.levelno == logging.WARNING)
    assert record.message == "tool raised"
    assert record.exc_info is not None


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


class Deadly(Exception):
    """The event loop would take what comes of asking it for words as an order."""

    def __str__(self) -> str:
        raise SystemExit(3)


class Endless(Exception):
    def __str__(self) -> str:
        return "\0\ud800" + "x" * 100


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Wordless(), "body failed: Wordless"),
        (Deadly(), "body failed: Deadly"),
        (SystemExit(Deadly()), "body failed: SystemExit"),
        (SystemExit(3), "body failed: SystemExit: 3"),
        (KeyboardInterrupt(), "body failed: KeyboardInterrupt: "),
        (asyncio.CancelledError(), "body failed: it cancelled itself."),
        (TimeoutError(), "body failed: TimeoutError: "),
        (
            BaseExceptionGroup("both", [SystemExit(1)]),
            "body failed: BaseExceptionGroup: both (1 sub-exception)",
        ),
    ],
)
async def test_nothing_that_a_body_on_the_loop_raises_gets_out(error: BaseException, told: str) -> None:
    @tool
    async def body() -> None:
        raise error

    assert failure(await call(body)) == (ToolFailure.RAISED, told)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Wordless(), "body failed: Wordless"),
        (Deadly(), "body failed: Deadly"),
        (SystemExit(Deadly()), "body failed: SystemExit"),
        (SystemExit(3), "body failed: SystemExit: 3"),
        (KeyboardInterrupt(), "body failed: KeyboardInterrupt: "),
        (asyncio.CancelledError(), "body failed: CancelledError: "),
        (StopIteration(5), "body failed: StopIteration: 5"),
        (GeneratorExit(), "body failed: GeneratorExit: "),
    ],
)
async def test_nothing_that_a_body_in_a_thread_raises_gets_out(error: BaseException, told: str) -> None:
    @tool
    def body() -> None:
        raise error

    assert failure(await call(body)) == (ToolFailure.RAISED, told)


async def test_an_errors_words_are_limited_and_storable() -> None:
    @tool(output_limit=30)
    async def body() -> None:
        raise Endless

    _, told = failure(await call(body))
    assert told.startswith("body failed: Endless: \ufffd\ufffd")
    assert "\n[The output was cut here: 30 of " in told


async def test_a_long_result_is_cut_and_marked() -> None:
    @tool(output_limit=5)
    def body() -> str:
        return "0123456789"

    outcome = await call(body)
    assert isinstance(outcome, ToolOutput)
    assert outcome.truncated
    assert outcome.text == "01234\n[The output was cut here: 5 of 10 bytes are shown.]"


async def test_a_result_that_cannot_be_read_is_a_failure_that_is_not_tried_again() -> None:
    """The effect has happened; doing it twice would not make the result readable."""
    calls = []

    @tool(retries=3)
    def body() -> object:
        calls.append(1)
        return object()

    kind, told = failure(await call(body))
    assert kind is ToolFailure.RAISED
    assert told.startswith("body failed: it returned a object, which cannot be written as JSON")
    assert calls == [1]


async def test_a_plain_function_that_returns_a_coroutine_is_told_what_is_wrong() -> None:
    async def inner() -> str:
        return "never"

    coroutine = inner()

    @tool
    def body() -> Any:
        return coroutine

    _, told = failure(await call(body))
    assert "it returned a coroutine" in told
    coroutine.close()


async def test_a_call_that_raises_is_made_again_as_often_as_its_tool_allows() -> None:
    pauses, calls = Pauses(), []

    @tool(retries=2)
    async def flaky(items: list[int]) -> int:
        calls.append(list(items))
        items.append(0)
        if len(calls) < 3:
            raise ConnectionError("reset")
        return len(calls)

    assert text(await call(flaky, '{"items": [7]}', a_runner(pauses=pauses))) == "3"
    assert calls == [[7], [7], [7]]
    assert pauses.after == [1, 2]


async def test_when_all_attempts_fail_the_last_failure_is_the_result() -> None:
    calls = []

    @tool(retries=1)
    def flaky() -> None:
        calls.append(1)
        raise ConnectionError(f"attempt {len(calls)}")

    assert failure(await call(flaky)) == (ToolFailure.RAISED, "flaky failed: ConnectionError: attempt 2")


async def test_without_retries_a_call_is_made_once() -> None:
    calls = []

    @tool
    def flaky() -> None:
        calls.append(1)
        raise ConnectionError

    await call(flaky)
    assert calls == [1]


async def test_the_duration_is_of_all_attempts() -> None:
    @tool
    def body() -> None:
        threading.Event().wait(0.02)

    assert (await call(body)).duration_ms >= 20
