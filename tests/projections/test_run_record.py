"""The run JSON as a fold of the run's stream."""

from decimal import Decimal
from uuid import UUID

import msgspec
import pytest

from domain.events import ContinuationBlock as Block
from domain.events import (
    ModelReplied,
    RunAwaitingApproval,
    RunAwaitingInput,
    RunCancelled,
    RunCompleted,
    RunContinuationBlocked,
    RunContinued,
    RunCreated,
    RunFailed,
    RunKind,
    RunWaitEnded,
    SessionTurnAdded,
    TextDelta,
    WaitOver,
)
from domain.events.side import SideCallReplied, SidePurpose
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.messages import Usage
from domain.replay import Replay, ReplayTools
from domain.run import RunStatus
from projections.base import BrokenStream
from projections.run_record import RunRecord, record_of
from tests.domain.facts import CREATED, OPENED, QUESTION, calling, failed, replied, says
from tests.projections.story import RUN, minute, stream


def folded(*events: object) -> RunRecord:
    record = record_of(stream(*events))  # type: ignore[arg-type]
    assert record is not None
    return record


def priced(step: int, cost: str | None, currency: str = "USD") -> ModelReplied:
    reply = replied(step, says("It ships."), cost=None if cost is None else Decimal(cost))
    return msgspec.structs.replace(reply, currency=currency)


def test_a_created_run_is_queued_and_has_cost_nothing() -> None:
    assert folded(CREATED) == RunRecord(
        id=RUN,
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        status=RunStatus.QUEUED,
        root_run_id=RUN,
        cost="0",
        events=1,
        created_at=minute(1),
    )


def test_a_completed_run_tells_its_times_its_tokens_and_its_cost() -> None:
    usage = Usage(input_tokens=30, output_tokens=9, cached_input_tokens=10, reasoning_tokens=4)
    record = folded(
        *OPENED,
        calling(1),
        replied(1, says("It ships."), usage=usage, cost=Decimal("0.0100")),
        RunCompleted(answer="It ships."),
    )
    assert msgspec.to_builtins(record) == {
        "id": str(RUN),
        "tenant": "acme",
        "kind": "agent",
        "agent": "support",
        "status": "Completed",
        "provider": "primary",
        "model_id": "small",
        "session_id": None,
        "root_run_id": str(RUN),
        "parent_run_id": None,
        "depth": 0,
        "continued_from_run_id": None,
        "continued_by_run_id": None,
        "continuation_blocked": None,
        "wait_over": None,
        "replay_of_run_id": None,
        "error": None,
        "error_type": None,
        "error_class": None,
        "usage": {
            "input_tokens": 30,
            "output_tokens": 9,
            "cached_input_tokens": 10,
            "reasoning_tokens": 4,
        },
        "cost": "0.01",
        "currency": "USD",
        "reported_cost": "0",
        "events": 5,
        "created_at": "2026-03-01T12:01:00Z",
        "started_at": "2026-03-01T12:02:00Z",
        "ended_at": "2026-03-01T12:05:00Z",
    }


def test_before_any_answer_the_model_is_the_one_the_run_was_started_with() -> None:
    record = folded(*OPENED, calling(1), failed(1))
    assert (record.provider, record.model_id) == ("primary", "small")


def test_the_model_is_the_one_that_answered_last() -> None:
    """CHAIN-12: a fallback's answer is the fallback's."""
    answer = msgspec.structs.replace(replied(1, says("Hi")), provider="backup", model="big")
    record = folded(*OPENED, calling(1), failed(1), answer)
    assert (record.provider, record.model_id) == ("backup", "big")


def test_what_is_called_besides_is_paid_for_and_leaves_the_model_as_it_is() -> None:
    """CHAIN-13."""
    summary = SideCallReplied(
        purpose=SidePurpose.COMPACTION,
        attempt=1,
        provider="other",
        model="tiny",
        usage=Usage(input_tokens=7),
        cost=Decimal("0.2"),
    )
    record = folded(*OPENED, summary, calling(1), priced(1, "0.1"))
    assert (record.provider, record.model_id) == ("primary", "small")
    assert (record.cost, record.usage) == ("0.3", Usage(input_tokens=7))
    assert folded(*OPENED, summary).model_id == "small"


def test_a_failed_run_tells_why() -> None:
    error = RunFailed(error="no link left", error_type="chain_exhausted", error_class=ErrorClass.PROVIDER)
    record = folded(*OPENED, error)
    assert record.status is RunStatus.FAILED
    assert (record.error, record.error_type, record.error_class) == (
        "no link left",
        "chain_exhausted",
        "Provider",
    )
    assert record.ended_at == minute(3)


def test_a_cancelled_run_has_no_error() -> None:
    record = folded(*OPENED, RunCancelled(reason="enough"))
    assert (record.status, record.error, record.ended_at) == (RunStatus.CANCELLED, None, minute(3))


def test_a_run_that_waits_has_ended_and_says_what_came_of_the_wait() -> None:
    waits = (*OPENED, RunAwaitingApproval(calls=()))
    record = folded(*waits)
    assert (record.status, record.ended_at, record.wait_over) == (
        RunStatus.AWAITING_APPROVAL,
        minute(3),
        None,
    )
    assert folded(*OPENED, RunAwaitingInput(requests=())).status is RunStatus.AWAITING_INPUT
    expired = folded(*waits, RunWaitEnded(cause=WaitOver.EXPIRED))
    assert (expired.status, expired.wait_over) == (RunStatus.AWAITING_APPROVAL, WaitOver.EXPIRED)


def test_a_child_run_names_its_root_and_its_parent() -> None:
    root, parent = RunId(UUID(int=1)), RunId(UUID(int=2))
    child = RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=(QUESTION,),
        root_run_id=root,
        parent_run_id=parent,
        depth=2,
    )
    record = folded(child)
    assert (record.root_run_id, record.parent_run_id, record.depth) == (root, parent, 2)


def test_one_call_without_a_price_makes_the_cost_unknown_for_good() -> None:
    record = folded(*OPENED, priced(1, "0.5"), priced(2, None), priced(3, "0.5"))
    assert (record.cost, record.currency) == (None, "USD")


def test_amounts_in_two_currencies_are_not_added_up() -> None:
    record = folded(*OPENED, priced(1, "0.5", "USD"), priced(2, "0.5", "EUR"))
    assert (record.cost, record.currency) == (None, "USD")


def test_the_currency_is_that_of_the_first_price_and_not_of_a_call_without_one() -> None:
    assert folded(*OPENED, priced(1, None, "USD"), priced(2, "1", "EUR")).currency == "EUR"


@pytest.mark.parametrize(
    ("costs", "total"),
    [(["1E-7"], "0.0000001"), (["0E-8"], "0"), (["1E+2"], "100"), (["0.1", "0.2"], "0.3")],
)
def test_a_cost_is_written_without_exponent_or_idle_zeros(costs: list[str], total: str) -> None:
    replies = [priced(step, cost) for step, cost in enumerate(costs, 1)]
    assert folded(*OPENED, *replies).cost == total


def test_costs_are_added_without_rounding() -> None:
    record = folded(*OPENED, priced(1, "1E+20"), priced(2, "1E-20"))
    assert record.cost == "100000000000000000000.00000000000000000001"


def test_text_that_postgres_cannot_hold_is_replaced_in_the_fold_too() -> None:
    """A row and a fold of the same run are equal, so both are rid of it."""
    created = msgspec.structs.replace(CREATED, session_id="a\0b")
    error = RunFailed(error="bad \0 byte", error_type="internal", error_class=ErrorClass.INTERNAL)
    record = folded(created, error)
    assert (record.session_id, record.error) == ("a\ufffdb", "bad \ufffd byte")


ORPHANED = RunFailed(error="host gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
OTHER = RunId(UUID(int=5))


def test_an_interrupted_run_names_the_one_that_goes_on_in_its_place() -> None:
    """CONT-5: and stays what it was."""
    record = folded(*OPENED, ORPHANED, RunContinued(by=OTHER))
    assert (record.status, record.continued_by_run_id) == (RunStatus.FAILED, OTHER)
    assert (record.events, record.ended_at) == (4, minute(3))


def test_a_run_that_is_not_continued_says_why_until_it_is() -> None:
    """CONT-3."""
    blocked = RunContinuationBlocked(cause=Block.OUTCOME_UNKNOWN, reason="nobody knows", remedy="find out")
    assert folded(*OPENED, ORPHANED, blocked).continuation_blocked is Block.OUTCOME_UNKNOWN
    record = folded(*OPENED, ORPHANED, blocked, RunContinued(by=OTHER))
    assert (record.continuation_blocked, record.continued_by_run_id) == (None, OTHER)


def test_a_replay_names_the_run_that_it_repeats() -> None:
    replay = Replay(run_id=OTHER, tools=ReplayTools.NONE)
    assert folded(msgspec.structs.replace(CREATED, replay=replay)).replay_of_run_id == OTHER


def test_a_stream_of_another_kind_has_no_record() -> None:
    assert record_of(stream(SessionTurnAdded(run_id=RUN, messages=()))) is None


def test_a_gap_or_a_repeat_in_the_stream_is_refused() -> None:
    """EVENT-1: the sequence is gapless, and a view does not cover it up where it is not."""
    first, second, third = stream(*OPENED, TextDelta(step=1, text="It"))
    with pytest.raises(BrokenStream, match="goes on at 3 after 1"):
        record_of([first, third])
    with pytest.raises(BrokenStream, match="goes on at 2 after 2"):
        record_of([first, second, second])


def test_a_stream_that_begins_in_the_middle_is_refused() -> None:
    with pytest.raises(BrokenStream, match="goes on at 2 after 0"):
        record_of(stream(*OPENED)[1:])
    with pytest.raises(BrokenStream, match="begins with RunStarted"):
        record_of(stream(OPENED[1]))
