"""Calls that the output limit cut off are not made (TOOL-1, CHAIN-8)."""

import pytest

from domain import events as e
from domain.messages import AssistantMessage, ToolCall
from domain.truncation import is_cut_off
from tests.domain.facts import OPENED, calling, replied
from tests.domain.given import given

FIRST = ToolCall(id="c1", name="buy", arguments="{}")


def after(arguments: str, finish: e.FinishReason = e.FinishReason.LENGTH) -> tuple[bool, bool]:
    """Whether the first of two calls is cut off, and whether the last one is."""
    last = ToolCall(id="c2", name="buy", arguments=arguments)
    run = given(
        *OPENED, calling(1), replied(1, AssistantMessage(tool_calls=(FIRST, last)), finish=finish)
    ).run
    return is_cut_off(run, FIRST), is_cut_off(run, last)


@pytest.mark.parametrize("arguments", ["", "{}", " {} ", "{", '{"amount": 1', '{"amount": 1}}', "[1]", "1"])
def test_a_last_call_that_may_have_lost_its_arguments_is_cut_off(arguments: str) -> None:
    assert after(arguments) == (False, True)


def test_a_call_whose_arguments_are_whole_is_not() -> None:
    assert after('{"amount": 1}') == (False, False)


@pytest.mark.parametrize("finish", [e.FinishReason.TOOL_CALLS, e.FinishReason.STOP])
def test_a_reply_that_ended_by_itself_is_whole(finish: e.FinishReason) -> None:
    assert after("{}", finish) == (False, False)
