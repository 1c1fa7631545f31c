"""What the end of a cancelled run says of what it came upon (CANCEL-3)."""

from domain.agent import Link
from domain.commands import CancelRun, CloseAbandoned
from domain.events import (
    RunCancelled,
    RunCancelRequested,
    RunFailed,
    StoppedCall,
    ToolFailure,
    ToolOutcomeUnknown,
)
from domain.failure import ErrorClass, RunError
from tests.domain.facts import CREATED, OPENED, asked_for, call, calling, invoking, tool_failed
from tests.domain.given import given

FIRST, SECOND, THIRD = call("call_1"), call("call_2", "refund"), call("call_3")
STOPPED = CancelRun(reason="too slow", descendants=2)


def test_a_model_call_that_was_given_up_is_named() -> None:
    """CANCEL-3"""
    assert given(*OPENED, calling(1)).when(STOPPED) == [
        RunCancelled(reason="too slow", model_call=Link(provider="primary", model="small"), descendants=2)
    ]


def test_tool_calls_that_were_stopped_are_told_from_those_that_were_not() -> None:
    """CANCEL-3: one was cancelled, one was left behind, one had not begun."""
    asked = (*OPENED, *asked_for(FIRST, SECOND, THIRD))
    stopped = tool_failed(FIRST, "stopped", ToolFailure.CANCELLED)
    left = ToolOutcomeUnknown(call_id="call_2", tool="refund", reason="still running")
    facts = (*asked, invoking(FIRST), invoking(SECOND), stopped, left)
    assert given(*facts).when(CancelRun()) == [
        RunCancelled(
            interrupted=(StoppedCall(call_id="call_1", tool="get_order"),),
            unknown=(StoppedCall(call_id="call_2", tool="refund"),),
        )
    ]


def test_a_run_between_two_calls_has_nothing_to_say() -> None:
    assert given(*OPENED).when(CancelRun()) == [RunCancelled()]


GONE = RunError(message="its host is gone", type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
FAILED = RunFailed(error="its host is gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)


def test_a_run_that_nothing_works_on_any_more_fails() -> None:
    """RECON-2"""
    assert given(*OPENED).when(CloseAbandoned(error=GONE)) == [FAILED]


def test_a_cancel_that_its_owner_did_not_live_to_read_is_kept() -> None:
    """CANCEL-1: with its receipt; a call that was under way may have had its effect."""
    facts = (*OPENED, *asked_for(SECOND), invoking(SECOND))
    assert given(*facts).when(CloseAbandoned(error=GONE, asked="too slow")) == [
        RunCancelRequested(reason="too slow"),
        RunCancelled(reason="too slow", unknown=(StoppedCall(call_id="call_2", tool="refund"),)),
    ]


def test_a_cancel_that_its_owner_had_begun_to_carry_out_is_brought_to_its_end() -> None:
    """CANCEL-1: with the reason that is on record, whatever else was said since."""
    facts = (*OPENED, calling(1), RunCancelRequested(reason="first"))
    assert given(*facts).when(CloseAbandoned(error=GONE, asked="second")) == [
        RunCancelled(reason="first", model_call=Link(provider="primary", model="small"))
    ]


def test_a_run_that_still_waited_is_cancelled_as_well() -> None:
    """CANCEL-1"""
    assert given(CREATED).when(CloseAbandoned(error=GONE, asked="")) == [RunCancelRequested(), RunCancelled()]
