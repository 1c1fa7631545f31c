"""Two runs side by side."""

from decimal import Decimal

import msgspec
import pytest

from domain import events as e
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.messages import Usage
from projections.comparison import DIFFED_LINES, CallPair, Comparison, compare
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
from tests.projections.story import RUN, stream

FAILED = e.RunFailed(error="no", error_type="chain_exhausted", error_class=ErrorClass.PROVIDER)


def answered(text: str, *, cost: str | None = "0.10", tokens: int = 10) -> tuple[e.Event, ...]:
    usage = Usage(input_tokens=tokens, output_tokens=1)
    reply = replied(1, says(text), usage=usage, cost=None if cost is None else Decimal(cost))
    return (*OPENED, calling(1), reply, e.RunCompleted(answer=text))


def compared(a: tuple[e.Event, ...], b: tuple[e.Event, ...]) -> Comparison:
    return compare(stream(*a), stream(*b, run_id=RunId(RUN)))


def test_two_runs_of_one_answer_are_the_same() -> None:
    found = compared(answered("It ships."), answered("It ships."))
    assert (found.same_outcome, found.same_answer, found.answer_diff) == (True, True, ())
    assert (found.usage_difference, found.cost_difference) == (Usage(), "0")
    assert (found.a.steps, found.a.duration_ms, found.a.answer) == (1, 3 * 60_000, "It ships.")


def test_answers_are_compared_line_by_line() -> None:
    found = compared(answered("one\ntwo"), answered("one\nthree"))
    assert not found.same_answer
    assert found.answer_diff is not None
    assert found.answer_diff[2:] == ("@@ -1,2 +1,2 @@", " one", "-two", "+three")


def test_answers_that_are_too_long_for_that_are_compared_as_wholes() -> None:
    found = compared(answered("\n" * (DIFFED_LINES + 1)), answered("one"))
    assert (found.same_answer, found.answer_diff) == (False, None)


def test_a_run_that_failed_has_no_answer_and_another_outcome() -> None:
    found = compared(answered("It ships."), (*OPENED, FAILED))
    assert (found.same_outcome, found.same_answer, found.b.answer) == (False, False, None)
    assert found.b.run.error_type == "chain_exhausted"


def test_what_the_second_used_and_cost_more_is_told_exactly() -> None:
    found = compared(answered("a", cost="0.3", tokens=10), answered("a", cost="0.1", tokens=25))
    assert found.usage_difference == Usage(input_tokens=15)
    assert found.cost_difference == "-0.2"


def test_a_cost_that_is_not_known_has_no_difference() -> None:
    assert compared(answered("a"), answered("a", cost=None)).cost_difference is None
    reply = msgspec.structs.replace(replied(1, says("a"), cost=Decimal(1)), currency="EUR")
    other = (*OPENED, calling(1), reply)
    assert compared(answered("a"), other).cost_difference is None
    assert compared(answered("a"), OPENED).cost_difference == "-0.1"


LOOK, LOOK_AGAIN, REFUND = call("c1"), call("d1", arguments=' { "id" : 7.0 } '), call("c2", "refund", "{}")


def test_equal_calls_stand_beside_each_other_and_the_others_alone() -> None:
    """Equal is the tool and what the arguments say, as everywhere."""
    looked = (invoking(LOOK), returned(LOOK, "shipped"))
    a = (*OPENED, *asked_for(LOOK, REFUND), *looked, invoking(REFUND), returned(REFUND, "done"))
    b = (*OPENED, *asked_for(LOOK_AGAIN), invoking(LOOK_AGAIN), returned(LOOK_AGAIN, "lost"))
    pairs = compared(a, b).tool_calls
    assert [(pair.tool, sides(pair), pair.same) for pair in pairs] == [
        ("get_order", ("shipped", "lost"), False),
        ("refund", ("done", None), False),
    ]


def test_a_call_that_was_refused_is_not_the_same_as_one_that_returned_the_same_text() -> None:
    a = (*OPENED, *asked_for(LOOK), invoking(LOOK), returned(LOOK, "no"))
    b = (*OPENED, *asked_for(LOOK), tool_failed(LOOK, "no", e.ToolFailure.NOT_RUN))
    [pair] = compared(a, b).tool_calls
    assert (sides(pair), pair.same) == (("no", "no"), False)


def sides(pair: CallPair) -> tuple[str | None, str | None]:
    return (pair.a.output if pair.a else None, pair.b.output if pair.b else None)


def test_what_is_no_run_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="two runs"):
        compare(stream(*OPENED), [])
