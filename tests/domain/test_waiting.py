"""Runs that end where a person's word is needed, and what may follow."""

from uuid import UUID

import pytest

from domain import events as e
from domain.commands import AwaitApproval, AwaitInput, NoteContinued, NoteWaitEnded, RequestCancel
from domain.idempotency import ChainState, state_of
from domain.ids import RunId
from domain.refusals import OutOfTurn, RunAlreadyEnded, WaitIsOver
from domain.run import RunStatus
from domain.turn import Rest, TurnLimits, next_action
from tests.domain.facts import OPENED, asked_for, call, invoking
from tests.domain.given import Given, given

REFUND = call("c1", "refund")
AWAITED = e.AwaitedCall(call_id="c1", tool="refund", arguments='{"id":7}', effect="destructive")
REQUESTS = (e.InputRequest(id="r1", node="approve", prompt="Publish?"),)
ASKED = given(*OPENED, *asked_for(REFUND))
WAITS = ASKED.after(AwaitApproval(calls=(AWAITED,)))
ASKS = given(*OPENED).after(AwaitInput(requests=REQUESTS))
OTHER = RunId(UUID(int=9))
WITHDRAWN = NoteWaitEnded(cause=e.WaitOver.WITHDRAWN, reason="not wanted")


def test_a_run_that_waits_for_an_approval_has_ended() -> None:
    """TOOL-2: the run ends `AwaitingApproval`, its calls unmade."""
    assert ASKED.when(AwaitApproval(calls=(AWAITED,))) == [e.RunAwaitingApproval(calls=(AWAITED,))]
    assert WAITS.run.status is RunStatus.AWAITING_APPROVAL
    assert (WAITS.run.status.ended, WAITS.run.status.awaits) == (True, True)
    assert next_action(WAITS.run, TurnLimits()) == Rest()
    WAITS.refuses(RequestCancel(), RunAlreadyEnded)


def test_a_run_that_waits_for_an_answer_has_ended() -> None:
    """WF-3"""
    assert given(*OPENED).when(AwaitInput(requests=REQUESTS)) == [e.RunAwaitingInput(requests=REQUESTS)]
    assert ASKS.run.status is RunStatus.AWAITING_INPUT


def test_a_run_waits_for_calls_that_it_has_open_and_has_not_begun() -> None:
    other = e.AwaitedCall(call_id="c2", tool="refund", arguments="{}", effect="destructive")
    ASKED.refuses(AwaitApproval(calls=(AWAITED, other)), OutOfTurn)
    ASKED.refuses(AwaitApproval(calls=()), OutOfTurn)
    given(*ASKED.facts, invoking(REFUND)).refuses(AwaitApproval(calls=(AWAITED,)), OutOfTurn)
    given(*OPENED).refuses(AwaitInput(requests=()), OutOfTurn)


@pytest.mark.parametrize("waits", [WAITS, ASKS])
def test_one_run_goes_on_from_a_run_that_waits_or_none(waits: Given) -> None:
    assert waits.when(NoteContinued(by=OTHER)) == [e.RunContinued(by=OTHER)]
    assert waits.when(WITHDRAWN) == [e.RunWaitEnded(cause=e.WaitOver.WITHDRAWN, reason="not wanted")]
    waits.after(NoteContinued(by=OTHER)).refuses(WITHDRAWN, WaitIsOver)
    waits.after(WITHDRAWN).refuses(NoteContinued(by=OTHER), WaitIsOver)
    waits.after(WITHDRAWN).refuses(WITHDRAWN, WaitIsOver)


def test_who_did_not_wait_does_not_stop_waiting() -> None:
    given(*OPENED, e.RunCancelled()).refuses(WITHDRAWN, OutOfTurn)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (WAITS.facts, ChainState.WAITING),
        (WAITS.after(WITHDRAWN).facts, ChainState.NOTHING),
        (WAITS.after(NoteContinued(by=OTHER)).facts, ChainState.OPEN),
    ],
)
def test_a_key_is_answered_with_a_run_that_waits_or_waits_with_it(
    facts: tuple[e.RunEvent, ...], state: ChainState
) -> None:
    """IDEM-5: by what its form takes for an answer."""
    run = given(*facts).run
    assert state_of([run], continues=True) is ChainState.ANSWERED
    assert state_of([run], continues=True, goes_past_people=True) is state
