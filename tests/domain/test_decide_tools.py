"""The tool calls of a reply, and what they leave behind."""

from itertools import permutations

import pytest

from domain.commands import (
    CancelRun,
    InvokeTool,
    RecordToolFailure,
    RecordToolOutput,
    RecordUnknownOutcome,
    RequestCancel,
    RunCommand,
)
from domain.decide import OutOfTurn
from domain.events import (
    ToolEffect,
    ToolFailed,
    ToolFailure,
    ToolInvoking,
    ToolOutcomeUnknown,
    ToolReturned,
)
from domain.messages import ToolCall, ToolMessage
from domain.session import INTERRUPTED, turn_of
from tests.domain.facts import (
    OPENED,
    QUESTION,
    asked_for,
    call,
    calling,
    invoking,
    replied,
    returned,
    says,
    tool_failed,
)
from tests.domain.given import given

C1, C2, C3 = call("c1"), call("c2", "refund", '{"id":7}'), call("c3")
ASKED = (*OPENED, *asked_for(C1, C2, C3))
OUTPUT = RecordToolOutput(call_id="c1", output="shipped", duration_ms=12, truncated=True)
GONE = RecordUnknownOutcome(call_id="c1", reason="did not stop")


def failure(kind: ToolFailure) -> RecordToolFailure:
    return RecordToolFailure(call_id="c1", failure=kind, output="it failed", duration_ms=9)


def invoke(call_id: str) -> InvokeTool:
    return InvokeTool(call_id=call_id, effect=ToolEffect.EXTERNAL, call_key="k", safe_to_repeat=True)


def test_an_invocation_names_the_call_as_the_model_asked_for_it() -> None:
    assert given(*ASKED).when(invoke("c2")) == [
        ToolInvoking(
            call_id="c2",
            tool="refund",
            arguments='{"id":7}',
            effect=ToolEffect.EXTERNAL,
            call_key="k",
            safe_to_repeat=True,
        )
    ]


def test_a_call_is_invoked_once() -> None:
    assert given(*ASKED, invoking(C1)).when(invoke("c1")) == []
    given(*ASKED, invoking(C1), returned(C1, "shipped")).refuses(
        invoke("c1"), OutOfTurn, "its result already"
    )


@pytest.mark.parametrize("command", [invoke("c9"), OUTPUT, GONE, failure(ToolFailure.CANCELLED)])
def test_a_call_that_no_reply_asked_for_is_refused(command: RunCommand) -> None:
    asked = given(*OPENED, *asked_for(C2))
    asked.refuses(command, OutOfTurn, "has no tool call")
    given(*asked.facts, invoking(C2), returned(C2, "done")).refuses(command, OutOfTurn, "has no tool call")


def test_an_output_is_recorded_once() -> None:
    run = given(*ASKED, invoking(C1)).after(OUTPUT)
    assert run.facts[-1] == ToolReturned(
        call_id="c1", tool="get_order", output="shipped", duration_ms=12, truncated=True
    )
    assert run.when(OUTPUT) == []
    assert run.when(failure(ToolFailure.TIMED_OUT)) == []


@pytest.mark.parametrize("kind", ToolFailure)
def test_a_failure_is_a_result_and_is_recorded_once(kind: ToolFailure) -> None:
    run = given(*ASKED, invoking(C1)).after(failure(kind))
    assert run.facts[-1] == ToolFailed(
        call_id="c1", tool="get_order", failure=kind, output="it failed", duration_ms=9
    )
    assert run.when(failure(kind)) == []
    assert run.when(OUTPUT) == []
    assert run.run.transcript[-1] == ToolMessage(tool_call_id="c1", content="it failed", failed=True)


@pytest.mark.parametrize(
    "command", [OUTPUT, failure(ToolFailure.RAISED), failure(ToolFailure.TIMED_OUT), GONE]
)
def test_what_only_a_body_can_do_is_refused_before_its_invocation_is_on_record(command: RunCommand) -> None:
    """EVENT-2: `ToolInvoking` is committed before the body starts."""
    given(*ASKED).refuses(command, OutOfTurn, "never invoked")


@pytest.mark.parametrize(
    "kind", [ToolFailure.UNKNOWN_TOOL, ToolFailure.INVALID_ARGUMENTS, ToolFailure.CANCELLED]
)
def test_a_call_can_fail_before_its_body_starts(kind: ToolFailure) -> None:
    assert len(given(*ASKED).when(failure(kind))) == 1


def test_an_unknown_outcome_is_recorded_once_and_leaves_the_call_open() -> None:
    """CANCEL-3: a body that did not stop is left behind, its outcome unknown."""
    run = given(*ASKED, invoking(C1)).after(RequestCancel(), GONE)
    assert run.facts[-1] == ToolOutcomeUnknown(call_id="c1", tool="get_order", reason="did not stop")
    assert run.when(GONE) == []
    assert len(run.when(OUTPUT)) == 1  # it ended after all


def test_a_result_is_still_recorded_after_a_cancel_was_asked_for() -> None:
    """CANCEL-3: what a finished tool did stays recorded."""
    assert len(given(*ASKED, invoking(C1)).after(RequestCancel()).when(OUTPUT)) == 1


@pytest.mark.parametrize(
    "order", list(permutations((C1, C2, C3))), ids=lambda order: "-".join(c.id for c in order)
)
def test_results_stand_in_the_order_of_their_calls(order: tuple[ToolCall, ...]) -> None:
    """Calls that ran together end in any order; the model, and a repeated prompt, must not notice."""
    results = [tool_failed(c, f"result of {c.id}") for c in order]
    run = given(*ASKED, *results).run
    assert run.open_calls == ()
    assert [m.tool_call_id for m in run.transcript if isinstance(m, ToolMessage)] == ["c1", "c2", "c3"]


def test_a_call_id_may_come_again_in_a_later_step() -> None:
    again = call("c1", "refund")
    past = (*OPENED, *asked_for(C1), invoking(C1), returned(C1, "shipped"), calling(2))
    run = given(*past, replied(2, says("", again)))
    assert run.after(invoke("c1")).when(OUTPUT) == [
        ToolReturned(call_id="c1", tool="refund", output="shipped", duration_ms=12, truncated=True)
    ]


def test_a_cancelled_turn_is_history_that_every_provider_takes() -> None:
    """CANCEL-3: interrupted calls get a synthetic result, so that the session can go on."""
    run = given(*ASKED, invoking(C1), invoking(C3), returned(C3, "shipped")).after(
        RequestCancel(), CancelRun()
    )
    assert turn_of(run.run).messages == (
        QUESTION,
        says("", C1, C2, C3),
        ToolMessage(tool_call_id="c1", content=INTERRUPTED, failed=True),
        ToolMessage(tool_call_id="c2", content=INTERRUPTED, failed=True),
        ToolMessage(tool_call_id="c3", content="shipped"),
    )
