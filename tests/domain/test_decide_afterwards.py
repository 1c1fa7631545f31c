"""What may be said about a run that has ended."""

from uuid import UUID

import pytest

from domain import events as e
from domain.commands import AfterwardsCommand, CompleteRun, FailRun, NoteBlocked, NoteContinued, ResolveTool
from domain.decide import RunAlreadyEnded
from domain.failure import ErrorClass, RunError
from domain.ids import RunId
from domain.refusals import (
    AlreadyContinued,
    OutcomeKnown,
    OutOfTurn,
    ResolvedOtherwise,
    RunNotEnded,
    ToolCallNotFound,
)
from domain.run import RunStatus
from domain.turn import Rest, TurnLimits, next_action
from tests.domain.facts import OPENED, asked_for, call, calling, invoking, replied, returned, says
from tests.domain.given import given
from tests.domain.playing import ORPHAN

REFUND, CHARGE, LATER = call("c1", "refund"), call("c2", "charge"), call("c3", "later")
OTHER = RunId(UUID(int=9))
SAID = ResolveTool(call_id="c1", output="refunded")
BLOCKED = NoteBlocked(cause=e.ContinuationBlock.OUTCOME_UNKNOWN, reason="nobody knows", remedy="find out")
LIVE = given(
    *OPENED,
    *asked_for(REFUND, CHARGE, LATER),
    invoking(REFUND, e.ToolEffect.DESTRUCTIVE),
    invoking(CHARGE, e.ToolEffect.DESTRUCTIVE),
    returned(CHARGE, "charged"),
)
ENDED = given(*LIVE.facts, ORPHAN)


def test_the_outcome_of_an_interrupted_call_is_said_once() -> None:
    facts = ENDED.when(SAID)
    assert facts == [e.ToolResolved(call_id="c1", tool="refund", output="refunded")]
    resolved = ENDED.after(SAID)
    assert resolved.when(SAID) == []
    assert [one.outcome_unknown for one in resolved.run.open_calls] == [False, False]


def test_a_call_that_failed_is_resolved_as_failed() -> None:
    facts = ENDED.when(ResolveTool(call_id="c1", output="no such order", failed=True))
    assert facts == [e.ToolResolved(call_id="c1", tool="refund", output="no such order", failed=True)]


@pytest.mark.parametrize(
    "otherwise",
    [ResolveTool(call_id="c1", output="refused"), ResolveTool(call_id="c1", output="refunded", failed=True)],
)
def test_who_says_something_else_is_refused(otherwise: ResolveTool) -> None:
    ENDED.after(SAID).refuses(otherwise, ResolvedOtherwise)


def test_an_outcome_that_the_run_left_behind_is_resolved_too() -> None:
    """CANCEL-3: whatever the run ended as."""
    left = e.ToolOutcomeUnknown(call_id="c1", tool="refund", reason="did not stop")
    assert given(*LIVE.facts, left, e.RunCancelled()).when(SAID) != []


@pytest.mark.parametrize("call_id", ["c2", "c3"])
def test_only_what_is_unknown_can_be_found_out(call_id: str) -> None:
    """One has its result, the other never began."""
    ENDED.refuses(ResolveTool(call_id=call_id, output="done"), OutcomeKnown)


def test_a_call_of_an_earlier_step_has_its_result() -> None:
    done = given(*OPENED, *asked_for(REFUND), invoking(REFUND), returned(REFUND, "done"), calling(2))
    past = given(*done.facts, replied(2, says("", call("c9"))), ORPHAN)
    past.refuses(SAID, OutcomeKnown)


def test_a_call_that_nobody_asked_for_is_not_there() -> None:
    ENDED.refuses(ResolveTool(call_id="c7", output="done"), ToolCallNotFound)


@pytest.mark.parametrize("command", [SAID, BLOCKED, NoteContinued(by=OTHER)])
def test_nothing_of_this_can_be_said_of_a_run_that_lives(command: AfterwardsCommand) -> None:
    LIVE.refuses(command, RunNotEnded)


def test_a_run_is_continued_by_one_other() -> None:
    """CONT-5: the old run's stream names the new one."""
    continued = ENDED.after(NoteContinued(by=OTHER))
    assert continued.facts[-1] == e.RunContinued(by=OTHER)
    assert continued.when(NoteContinued(by=OTHER)) == []
    continued.refuses(NoteContinued(by=RunId(UUID(int=8))), AlreadyContinued)
    continued.refuses(BLOCKED, AlreadyContinued)


def test_why_a_run_is_not_continued_is_said_once_for_each_reason() -> None:
    """CONT-3."""
    blocked = ENDED.after(BLOCKED)
    assert blocked.facts[-1] == e.RunContinuationBlocked(
        cause=e.ContinuationBlock.OUTCOME_UNKNOWN, reason="nobody knows", remedy="find out"
    )
    assert blocked.when(BLOCKED) == []
    gone = NoteBlocked(cause=e.ContinuationBlock.AGENT_UNAVAILABLE, reason="no agent", remedy="define it")
    assert len(blocked.when(gone)) == 1
    assert len(blocked.when(NoteContinued(by=OTHER))) == 1


@pytest.mark.parametrize("end", [e.RunCompleted(answer="It ships."), e.RunCancelled()])
@pytest.mark.parametrize("command", [BLOCKED, NoteContinued(by=OTHER)])
def test_only_a_failed_run_is_continued(end: e.RunEvent, command: AfterwardsCommand) -> None:
    given(*OPENED, end).refuses(command, OutOfTurn)


def test_what_is_said_afterwards_changes_nothing_about_the_end() -> None:
    """A closed run is never rewritten."""
    later = ENDED.after(SAID, NoteContinued(by=OTHER))
    assert later.run.status is RunStatus.FAILED
    assert next_action(later.run, TurnLimits()) == Rest()
    error = RunError(message="no", type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
    for command in (FailRun(error=error), CompleteRun()):
        later.refuses(command, RunAlreadyEnded)
