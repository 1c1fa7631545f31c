"""The tool calls of a run as a fold of the run's stream."""

import msgspec
import pytest

from domain.events import (
    RunCancelled,
    RunCompleted,
    RunFailed,
    ToolAnswered,
    ToolEffect,
    ToolFailure,
    ToolOutcomeUnknown,
    ToolResolved,
)
from domain.failure import ErrorClass
from projections.base import BrokenStream
from projections.tool_calls import ABANDONED, ToolCallRecord, ToolCallState, tool_calls_of
from tests.domain.facts import (
    OPENED,
    asked_for,
    call,
    calling,
    invoking,
    replied,
    returned,
    says,
    tool_failed,
)
from tests.projections.story import RUN, minute, stream

FIRST, SECOND = call("c1"), call("c2", "refund", "{}")
CRASHED = RunFailed(error="host gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)


def states(*events: object) -> list[tuple[str, ToolCallState]]:
    return [(found.call_id, found.state) for found in tool_calls_of(stream(*events))]  # type: ignore[arg-type]


def test_a_call_that_returned_has_its_arguments_output_and_times() -> None:
    result = msgspec.structs.replace(returned(FIRST, "shipped"), duration_ms=12, truncated=True)
    facts = stream(*OPENED, *asked_for(FIRST), invoking(FIRST, ToolEffect.WRITE), result)
    assert tool_calls_of(facts) == [
        ToolCallRecord(
            run_id=RUN,
            ordinal=1,
            tenant="acme",
            step=1,
            reply_sequence=4,
            call_id="c1",
            tool="get_order",
            state=ToolCallState.RETURNED,
            effect=ToolEffect.WRITE,
            arguments='{"id":7}',
            output="shipped",
            truncated=True,
            call_key="key-c1",
            requested_at=minute(4),
            started_at=minute(5),
            ended_at=minute(6),
            duration_ms=12,
        )
    ]


def test_a_call_under_way_is_invoking_and_one_not_started_is_not_shown() -> None:
    assert states(*OPENED, *asked_for(FIRST, SECOND), invoking(SECOND)) == [("c2", ToolCallState.INVOKING)]


@pytest.mark.parametrize(("failed", "state"), [(False, ToolCallState.RETURNED), (True, ToolCallState.FAILED)])
def test_a_call_answered_from_the_ledger_has_a_result_and_never_started(
    failed: bool, state: ToolCallState
) -> None:
    """CHAIN-6."""
    answered = ToolAnswered(
        call_id="c1",
        tool="get_order",
        arguments='{"id":7}',
        output="shipped",
        failed=failed,
        recorded_run_id=RUN,
        recorded_call_id="c0",
    )
    (found,) = tool_calls_of(stream(*OPENED, *asked_for(FIRST), answered))
    assert (found.state, found.output, found.started_at) == (state, "shipped", None)


def test_a_call_of_an_unknown_tool_failed_without_having_started() -> None:
    facts = stream(*OPENED, *asked_for(FIRST), tool_failed(FIRST, "no such tool"))
    (found,) = tool_calls_of(facts)
    assert (found.state, found.failure) == (ToolCallState.FAILED, ToolFailure.UNKNOWN_TOOL)
    assert (found.started_at, found.effect, found.arguments) == (None, None, '{"id":7}')


def test_calls_are_listed_in_the_order_asked_for_whichever_came_back_first() -> None:
    facts = (*asked_for(FIRST, SECOND), invoking(FIRST), invoking(SECOND), returned(SECOND, "ok"))
    assert states(*OPENED, *facts) == [("c1", ToolCallState.INVOKING), ("c2", ToolCallState.RETURNED)]


def test_an_id_that_a_later_step_uses_again_is_another_call() -> None:
    facts = stream(
        *OPENED,
        *asked_for(FIRST),
        invoking(FIRST),
        returned(FIRST, "one"),
        calling(2),
        replied(2, says("", FIRST)),
        invoking(FIRST),
        returned(FIRST, "two"),
    )
    assert [(c.ordinal, c.step, c.output) for c in tool_calls_of(facts)] == [(1, 1, "one"), (2, 2, "two")]


def test_a_call_left_behind_has_an_unknown_outcome_and_says_why() -> None:
    """CANCEL-3: that call's outcome is recorded as unknown."""
    left = ToolOutcomeUnknown(call_id="c1", tool="get_order", reason="did not stop in 5 s")
    (found,) = tool_calls_of(stream(*OPENED, *asked_for(FIRST), invoking(FIRST), left, RunCancelled()))
    assert (found.state, found.output) == (ToolCallState.UNKNOWN, "did not stop in 5 s")


def test_a_call_whose_run_ended_without_it_has_an_unknown_outcome() -> None:
    (found,) = tool_calls_of(stream(*OPENED, *asked_for(FIRST, SECOND), invoking(FIRST), CRASHED))
    assert (found.call_id, found.state, found.output) == ("c1", ToolCallState.UNKNOWN, ABANDONED)
    assert found.ended_at == minute(6)


@pytest.mark.parametrize(("failed", "state"), [(False, ToolCallState.RETURNED), (True, ToolCallState.FAILED)])
def test_an_outcome_that_somebody_found_out_is_shown_as_such(failed: bool, state: ToolCallState) -> None:
    resolved = ToolResolved(call_id="c1", tool="get_order", output="shipped", failed=failed)
    facts = stream(*OPENED, *asked_for(FIRST), invoking(FIRST), CRASHED, resolved)
    (found,) = tool_calls_of(facts)
    assert (found.state, found.output, found.resolved) == (state, "shipped", True)
    assert found.ended_at == minute(7)


def test_the_end_of_a_run_leaves_its_results_alone() -> None:
    facts = (*asked_for(FIRST), invoking(FIRST), returned(FIRST, "ok"), RunCompleted(answer="ok"))
    assert states(*OPENED, *facts) == [("c1", ToolCallState.RETURNED)]


def test_text_that_postgres_cannot_hold_is_replaced() -> None:
    odd = call("c\0", "get\0order", '{"id":"\0"}')
    (found,) = tool_calls_of(stream(*OPENED, *asked_for(odd), invoking(odd), returned(odd, "out\0")))
    assert (found.call_id, found.tool, found.arguments, found.output) == (
        "c\ufffd",
        "get\ufffdorder",
        '{"id":"\ufffd"}',
        "out\ufffd",
    )


def test_a_result_that_nobody_asked_for_is_refused() -> None:
    with pytest.raises(BrokenStream, match="'c2', which nobody asked for"):
        tool_calls_of(stream(*OPENED, *asked_for(FIRST), invoking(FIRST), returned(SECOND, "ok")))
