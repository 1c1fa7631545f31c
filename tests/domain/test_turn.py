"""What a running run does next."""

import pytest

from domain.events import RunCancelled, RunCancelRequested, RunEvent
from domain.failure import ErrorClass, RunError
from domain.turn import Action, CallModel, CallTools, Complete, GiveUp, Rest, TurnLimits, next_action
from tests.domain.facts import (
    CREATED,
    OPENED,
    STARTED,
    asked_for,
    call,
    calling,
    failed,
    invoking,
    replied,
    returned,
    says,
    tool_failed,
)
from tests.domain.given import given

C1, C2 = call("c1"), call("c2")
ASKED = (*OPENED, *asked_for(C1, C2))
ANSWERED = (*OPENED, calling(1), replied(1, says("It ships today.")))
TOO_MANY = GiveUp(
    error=RunError(
        message="the turn took 1 steps without an answer; turn.max_steps raises the limit",
        type="turn_steps_exceeded",
        error_class=ErrorClass.QUOTA_EXCEEDED,
    )
)
INPUT_ENDS_IN_A_REPLY = type(CREATED)(
    tenant="acme", kind=CREATED.kind, agent="support", input=(*CREATED.input, says("It is"))
)


def planned(*past: RunEvent, max_steps: int = 50) -> Action:
    return next_action(given(*past).run, TurnLimits(max_steps=max_steps))


@pytest.mark.parametrize(
    ("past", "action"),
    [
        ((), Rest()),
        ((CREATED,), Rest()),
        (OPENED, CallModel(step=1)),
        ((INPUT_ENDS_IN_A_REPLY, STARTED), CallModel(step=1)),
        ((*OPENED, calling(1)), Rest()),
        ((*OPENED, calling(1), failed(1)), CallModel(step=1)),
        ((*OPENED, calling(1), failed(1), calling(1, attempt=2)), Rest()),
        (ASKED, CallTools(calls=(C1, C2))),
        ((*ASKED, invoking(C1)), CallTools(calls=(C1, C2))),
        ((*ASKED, invoking(C1), returned(C1, "shipped")), CallTools(calls=(C2,))),
        ((*ASKED, tool_failed(C1, "no"), tool_failed(C2, "no")), CallModel(step=2)),
        ((*OPENED, calling(1), replied(1, says("I will look.", C1))), CallTools(calls=(C1,))),
        (ANSWERED, Complete()),
        ((*ANSWERED, calling(2), failed(2)), CallModel(step=2)),
        ((*ANSWERED, RunCancelled()), Rest()),
        ((*ASKED, RunCancelled()), Rest()),
        ((*ASKED, RunCancelRequested()), CallTools(calls=(C1, C2))),
    ],
)
def test_the_facts_so_far_say_what_comes_next(past: tuple[RunEvent, ...], action: Action) -> None:
    assert planned(*past) == action


@pytest.mark.parametrize(
    ("past", "action"),
    [
        ((*ASKED, tool_failed(C1, "no"), tool_failed(C2, "no")), TOO_MANY),
        (ASKED, CallTools(calls=(C1, C2))),
        (ANSWERED, Complete()),
        ((*OPENED, calling(1), failed(1)), CallModel(step=1)),
    ],
    ids=["no step is left", "its tools are still called", "its answer counts", "it may be tried again"],
)
def test_the_last_step_is_finished_and_no_further_one_begun(
    past: tuple[RunEvent, ...], action: Action
) -> None:
    assert planned(*past, max_steps=1) == action
