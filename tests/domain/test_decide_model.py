"""A step's model calls."""

from decimal import Decimal

import pytest

from domain.commands import BeginModelCall, RecordModelFailure, RecordReply, RecordText
from domain.decide import OutOfTurn
from domain.events import FinishReason, ModelCallFailed, ModelCallStarted, ModelReplied, RunEvent, TextDelta
from domain.failure import FailureClass
from domain.messages import AssistantMessage, Usage
from tests.domain.facts import (
    CREATED,
    OPENED,
    OVERLOADED,
    asked_for,
    call,
    calling,
    failed,
    invoking,
    replied,
    returned,
    says,
)
from tests.domain.given import given

C1 = call("c1")
USAGE = Usage(input_tokens=12, output_tokens=3)


def begin(step: int) -> BeginModelCall:
    return BeginModelCall(step=step, provider="primary", model="small")


def reply(step: int, message: AssistantMessage, finish: FinishReason = FinishReason.STOP) -> RecordReply:
    return RecordReply(step=step, message=message, finish=finish)


def test_the_first_call_of_a_running_run_is_step_one() -> None:
    facts = given(*OPENED).when(begin(1))
    assert facts == [ModelCallStarted(step=1, attempt=1, provider="primary", model="small")]


@pytest.mark.parametrize(
    ("past", "step"),
    [
        ((CREATED,), 1),
        (OPENED, 2),
        ((*OPENED, calling(1)), 1),
        ((*OPENED, calling(1)), 2),
        ((*OPENED, *asked_for(C1)), 2),
        ((*OPENED, calling(1), failed(1)), 2),
    ],
    ids=["queued", "skips a step", "twice", "over one in flight", "results missing", "step not answered"],
)
def test_a_call_out_of_turn_is_refused(past: tuple[RunEvent, ...], step: int) -> None:
    """EVENT-2: a result is recorded before the next model call."""
    given(*past).refuses(begin(step), OutOfTurn)


def test_a_failed_call_is_made_again_in_its_own_step_and_counted() -> None:
    facts = given(*OPENED, calling(1), failed(1)).when(begin(1))
    assert facts == [calling(1, attempt=2)]


def test_the_attempts_of_the_next_step_count_from_one() -> None:
    past = (*OPENED, calling(1), failed(1), calling(1, attempt=2), replied(1, says("", C1)))
    assert given(*past, invoking(C1), returned(C1, "shipped")).when(begin(2)) == [calling(2)]


def test_text_is_recorded_while_its_call_is_in_flight() -> None:
    run = given(*OPENED, calling(1))
    assert run.when(RecordText(step=1, text="It")) == [TextDelta(step=1, text="It")]
    assert run.when(RecordText(step=1, text="")) == []
    run.refuses(RecordText(step=2, text="It"), OutOfTurn, "no model call of step 2")


def test_delivered_text_is_remembered_until_the_call_ends() -> None:
    told = given(*OPENED, calling(1), TextDelta(step=1, text="It"))
    assert told.run.calling is not None
    assert told.run.calling.delivered
    again = given(*told.facts, failed(1), calling(1, attempt=2))
    assert again.run.calling is not None
    assert not again.run.calling.delivered


def test_a_reply_is_of_the_link_that_was_called() -> None:
    message = says("It ships today.")
    command = RecordReply(
        step=1, message=message, finish=FinishReason.STOP, usage=USAGE, cost=Decimal("0.001")
    )
    facts = given(*OPENED, calling(1)).when(command)
    assert facts == [
        ModelReplied(
            step=1,
            provider="primary",
            model="small",
            message=message,
            finish=FinishReason.STOP,
            usage=USAGE,
            cost=Decimal("0.001"),
        )
    ]


@pytest.mark.parametrize(
    "later",
    [(), (calling(2),), (calling(2), failed(2)), (calling(2), replied(2, says("Today.")))],
    ids=["at once", "next call in flight", "next call failed", "next call replied"],
)
def test_a_reply_told_twice_counts_once(later: tuple[RunEvent, ...]) -> None:
    past = (*OPENED, calling(1), replied(1, says("It ships")), *later)
    assert given(*past).when(reply(1, says("It ships"))) == []


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_reply_that_nobody_asked_for_is_refused(step: int) -> None:
    given(*OPENED).refuses(reply(step, says("It")), OutOfTurn)
    given(*OPENED, calling(1), failed(1)).refuses(reply(step, says("It")), OutOfTurn)


def test_an_empty_reply_is_refused() -> None:
    """CLASS `empty`: a success with neither text nor a tool call is a failed call."""
    given(*OPENED, calling(1)).refuses(reply(1, says("")), OutOfTurn, "an empty reply")


def test_a_reply_with_two_calls_of_one_id_is_refused() -> None:
    """One result could not answer both."""
    command = reply(1, says("", call("c1"), call("c1", "refund")), FinishReason.TOOL_CALLS)
    given(*OPENED, calling(1)).refuses(command, OutOfTurn, "one id")


def test_usage_and_cost_add_up_over_the_steps() -> None:
    first = replied(1, says("", C1), usage=USAGE, cost=Decimal("0.10"))
    second = replied(2, says("Today."), usage=USAGE, cost=Decimal("0.20"))
    run = given(*OPENED, calling(1), first, invoking(C1), returned(C1, "shipped"), calling(2), second).run
    assert run.usage == Usage(input_tokens=24, output_tokens=6)
    assert run.cost == Decimal("0.30")


def test_one_unknown_price_makes_the_cost_of_the_run_unknown() -> None:
    first = replied(1, says("", C1), cost=None)
    second = replied(2, says("Today."), cost=Decimal("0.20"))
    past = (*OPENED, calling(1), first, invoking(C1), returned(C1, "shipped"), calling(2), second)
    assert given(*past).run.cost is None


def test_a_failed_call_is_of_the_link_and_the_attempt_that_was_called() -> None:
    command = RecordModelFailure(step=1, failure_class=FailureClass.UNAVAILABLE, failure=OVERLOADED)
    facts = given(*OPENED, calling(1), failed(1), calling(1, attempt=2)).when(command)
    assert facts == [
        ModelCallFailed(
            step=1,
            attempt=2,
            provider="primary",
            model="small",
            failure_class=FailureClass.UNAVAILABLE,
            failure=OVERLOADED,
        )
    ]


def test_a_failure_of_no_call_is_refused() -> None:
    command = RecordModelFailure(step=1, failure_class=FailureClass.UNAVAILABLE, failure=OVERLOADED)
    given(*OPENED).refuses(command, OutOfTurn)
    given(*OPENED, calling(1), replied(1, says("It"))).refuses(command, OutOfTurn)
