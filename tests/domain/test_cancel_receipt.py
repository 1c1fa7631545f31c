"""What the end of a cancelled run says of what it came upon (CANCEL-3)."""

from domain.agent import Link
from domain.commands import CancelRun
from domain.events import RunCancelled, StoppedCall, ToolFailure, ToolOutcomeUnknown
from tests.domain.facts import OPENED, asked_for, call, calling, invoking, tool_failed
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
