"""Facts about calls besides the agent's own: in which order they may come, and what they change."""

from decimal import Decimal

import pytest

from domain import events as e
from domain.agent import Link
from domain.commands import BeginModelCall, CancelRun, Nudge, SideCommand
from domain.commands.side import (
    BeginSideCall,
    CompactContext,
    GiveUpCompaction,
    JudgeAnswer,
    RecordSideFailure,
    RecordSideQueueing,
    RecordSideReply,
    SendBack,
    UseSideFallback,
)
from domain.events.side import (
    CompactionFailed,
    ContextCompacted,
    SideCallFailed,
    SideCallQueued,
    SideCallReplied,
    SideCallStarted,
    SideFallbackUsed,
    SidePurpose,
    Summary,
)
from domain.failure import FailureClass
from domain.messages import Usage
from domain.refusals import OutOfTurn
from tests.domain.beside import DOWN, ERROR, JUDGE, SUMMARY
from tests.domain.facts import OPENED, asked_for, call, calling, replied, says
from tests.domain.given import Given, given

COMPACTS = BeginSideCall(purpose=SidePurpose.COMPACTION, provider="judge", model="j")
JUDGES = BeginSideCall(purpose=SidePurpose.JUDGE, provider="judge", model="j")
FAILS = RecordSideFailure(failure_class=FailureClass.UNAVAILABLE, failure=DOWN)
MOVES = UseSideFallback(
    purpose=SidePurpose.COMPACTION,
    primary=JUDGE.links[0],
    fallback=JUDGE.links[1],
    failure_class=FailureClass.UNAVAILABLE,
    reason="down",
    skipped=(Link(provider="small", model="j"),),
)
SHOWS = CompactContext(summary=SUMMARY, context_tokens=900)
ANSWERED = (*OPENED, calling(1), replied(1, says("Soon."), cost=Decimal(1)))


def opened() -> Given:
    return given(*OPENED)


def test_a_call_is_begun_waits_and_comes_back() -> None:
    begun = opened().after(COMPACTS)
    at = {"purpose": SidePurpose.COMPACTION, "attempt": 1, "provider": "judge", "model": "j"}
    assert begun.facts[-1] == SideCallStarted(**at)  # type: ignore[arg-type]
    assert begun.when(RecordSideQueueing()) == [SideCallQueued(**at)]  # type: ignore[arg-type]
    assert begun.after(RecordSideQueueing()).when(RecordSideQueueing()) == []
    reply = RecordSideReply(usage=Usage(input_tokens=9), cost=Decimal(2), currency="EUR", cached=True)
    assert begun.when(reply) == [
        SideCallReplied(
            usage=Usage(input_tokens=9),
            cost=Decimal(2),
            currency="EUR",
            cached=True,
            **at,  # type: ignore[arg-type]
        )
    ]


def test_its_tokens_and_cost_are_the_runs() -> None:
    """CHAIN-12, CHAIN-13: and its model is not."""
    used = RecordSideReply(usage=Usage(input_tokens=9, output_tokens=1), cost=Decimal(2))
    after = given(*ANSWERED).after(JUDGES, used)
    assert (after.run.usage, after.run.cost) == (Usage(input_tokens=9, output_tokens=1), Decimal(3))
    unpriced = given(*ANSWERED).after(JUDGES, RecordSideReply())
    assert unpriced.run.cost is None


def test_attempts_count_until_there_is_what_was_asked_for() -> None:
    tried = opened().after(COMPACTS, FAILS, COMPACTS, RecordSideReply(flaw="no shorter"), MOVES, COMPACTS)
    attempts = [fact.attempt for fact in tried.facts if isinstance(fact, SideCallStarted)]
    assert attempts == [1, 2, 3]
    again = tried.after(RecordSideReply(), SHOWS, COMPACTS)
    assert again.run.beside.attempts == 1


def test_a_failure_may_be_followed_by_one_switch() -> None:
    failed = opened().after(COMPACTS, FAILS)
    assert isinstance(failed.facts[-1], SideCallFailed)
    (switched,) = failed.when(MOVES)
    assert switched == SideFallbackUsed(
        purpose=SidePurpose.COMPACTION,
        primary=JUDGE.links[0],
        fallback=JUDGE.links[1],
        failure_class=FailureClass.UNAVAILABLE,
        reason="down",
        skipped=(Link(provider="small", model="j"),),
    )
    failed.after(MOVES).refuses(MOVES, OutOfTurn)
    opened().refuses(MOVES, OutOfTurn)
    assert failed.after(MOVES).run.standing == opened().run.standing


@pytest.mark.parametrize(
    "command",
    [COMPACTS, SHOWS, GiveUpCompaction(error=ERROR), BeginModelCall(step=1, provider="p", model="m")],
)
def test_nothing_else_is_done_while_a_call_is_in_flight(command: SideCommand | BeginModelCall) -> None:
    opened().after(COMPACTS).refuses(command, OutOfTurn)


@pytest.mark.parametrize("command", [COMPACTS, SHOWS, GiveUpCompaction(error=ERROR)])
def test_no_context_is_compacted_in_the_middle_of_a_step(command: SideCommand) -> None:
    given(*OPENED, calling(1)).refuses(command, OutOfTurn)
    given(*OPENED, *asked_for(call("c1"))).refuses(command, OutOfTurn)


@pytest.mark.parametrize("command", [RecordSideReply(), FAILS, RecordSideQueueing()])
def test_what_comes_of_a_call_needs_one(command: SideCommand) -> None:
    opened().refuses(command, OutOfTurn)


def test_a_judge_needs_an_answer_and_the_answer_one_verdict() -> None:
    opened().refuses(JUDGES, OutOfTurn)
    opened().refuses(JudgeAnswer(met=True, reason="Yes."), OutOfTurn)
    judged = given(*ANSWERED).after(JudgeAnswer(met=False, reason="No."))
    assert judged.when(JudgeAnswer(met=True, reason="Yes.")) == []


def test_an_answer_is_sent_back_once_and_only_if_it_was_found_wanting() -> None:
    back = SendBack(message="Again.")
    given(*ANSWERED).refuses(back, OutOfTurn)
    given(*ANSWERED).after(JudgeAnswer(met=True, reason="Yes.")).refuses(back, OutOfTurn)
    unmet = given(*ANSWERED).after(JudgeAnswer(met=False, reason="No."))
    unmet.after(back).refuses(back, OutOfTurn)
    assert unmet.after(back).run.answer == ""


def test_no_nudge_is_given_while_the_judge_is_asked() -> None:
    given(*ANSWERED).after(JUDGES).refuses(Nudge(missing="all", message="Go on."), OutOfTurn)


def test_a_summary_only_ever_stands_for_more() -> None:
    shown = opened().after(SHOWS)
    assert shown.facts[-1] == ContextCompacted(summary=SUMMARY, context_tokens=900)
    assert shown.when(SHOWS) == []
    other = Summary(messages=1, digest="other", text="Something else.")
    shown.refuses(CompactContext(summary=other, context_tokens=900), OutOfTurn)


def test_that_there_is_no_summary_is_said_once_a_step() -> None:
    failed = opened().after(GiveUpCompaction(error=ERROR))
    assert isinstance(failed.facts[-1], CompactionFailed)
    assert failed.when(GiveUpCompaction(error=ERROR)) == []


def test_a_cancel_says_which_call_was_given_up() -> None:
    """CANCEL-3."""
    (cancelled,) = opened().after(COMPACTS).when(CancelRun())
    assert cancelled == e.RunCancelled(model_call=Link(provider="judge", model="j"))
