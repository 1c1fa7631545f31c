"""Approvals as pure decisions: asked for once, settled once."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from domain import events as e
from domain.agent import Link
from domain.approval import (
    Approval,
    ApprovalClosed,
    ApprovalNotFound,
    ApprovalState,
    Decide,
    DecidedOtherwise,
    Expire,
    IncompleteDecision,
    Withdraw,
    decide,
    fold,
    request,
    run_opened_by,
)
from domain.commands import AwaitApproval, CreateRun, InvokeTool
from domain.evolve import fold as fold_run
from domain.ids import RunId, Version, approval_stream
from domain.ledger import call_key, canonical_arguments, inherited
from domain.messages import AssistantMessage, ToolMessage
from domain.queueing import BatchItem, QueueSpec
from domain.refusals import InvalidInput
from domain.run import OpenCall
from domain.turn import AskApproval, CallTools, TurnLimits, next_action
from tests.domain.facts import OPENED, QUESTION, STARTED, asked_for, call, invoking, returned
from tests.domain.given import RUN_ID, given

LOOK, REFUND, MAIL, AGAIN = (
    call("c1", "look"),
    call("c2", "refund"),
    call("c3", "mail"),
    call("c4", "refund", "{}"),
)
NEXT = RunId(UUID(int=7))
AT = datetime(2026, 11, 30, tzinfo=UTC)
YES, NO = e.CallDecision(approved=True), e.CallDecision(approved=False, reason="no")
ASKED = (*OPENED, *asked_for(LOOK, REFUND, MAIL, AGAIN), invoking(LOOK), returned(LOOK, "seen"))
ENDING = AwaitApproval(
    calls=tuple(
        e.AwaitedCall(call_id=one.id, tool=one.name, arguments=one.arguments, effect="destructive")
        for one in (REFUND, AGAIN)
    )
)
WAITS = given(*ASKED).after(ENDING)


def recorded(*events: e.ApprovalEvent) -> list[e.Recorded[e.ApprovalEvent]]:
    return [
        e.Recorded(
            stream_id=approval_stream(RUN_ID),
            sequence=Version(number),
            position=number,
            at=AT + timedelta(seconds=number - 1),
            tenant="acme",
            event=event,
        )
        for number, event in enumerate(events, 1)
    ]


def approval(*later: e.ApprovalEvent, expires_after_s: float = 60.0) -> Approval:
    return fold(recorded(request(given(*ASKED).run, ENDING, expires_after_s), *later))


BOTH = Decide(verdict=YES, opens=NEXT, by="key", reason="fine")
DECIDED = decide(approval(), BOTH)


def test_a_decision_is_of_every_call() -> None:
    """TOOL-2"""
    assert [
        e.ApprovalDecided(
            run_id=RUN_ID, decisions={"c2": YES, "c4": YES}, opens=NEXT, by="key", reason="fine"
        )
    ] == DECIDED
    each = Decide(verdicts={"c2": YES, "c4": NO}, opens=NEXT)
    [said] = decide(approval(), each)
    assert isinstance(said, e.ApprovalDecided)
    assert said.decisions == {"c2": YES, "c4": NO}


@pytest.mark.parametrize(
    "lacking",
    [Decide(verdicts={"c2": YES}, opens=NEXT), Decide(verdict=YES, verdicts={"c1": NO}, opens=NEXT)],
)
def test_a_decision_that_does_not_fit_the_calls_is_refused(lacking: Decide) -> None:
    with pytest.raises(IncompleteDecision):
        decide(approval(), lacking)


def test_the_same_decision_again_says_nothing_and_another_is_refused() -> None:
    """TOOL-2: reasons are words; what was decided is what counts."""
    settled = approval(*DECIDED)
    said = e.CallDecision(approved=True, reason="again")
    assert decide(settled, Decide(verdict=said, opens=RunId(UUID(int=8)))) == []
    with pytest.raises(DecidedOtherwise, match=str(NEXT)):
        decide(settled, Decide(verdict=YES, verdicts={"c4": NO}, opens=NEXT))


@pytest.mark.parametrize(
    ("by", "state"), [(Expire(), ApprovalState.EXPIRED), (Withdraw(by="key"), ApprovalState.WITHDRAWN)]
)
def test_an_approval_is_settled_once(by: Expire | Withdraw, state: ApprovalState) -> None:
    closed = approval(*decide(approval(), by))
    assert closed.state is state
    for late in (BOTH, Expire(), Withdraw()):
        with pytest.raises(ApprovalClosed, match=state):
            decide(closed, late)
    with pytest.raises(ApprovalClosed):
        decide(approval(*DECIDED), by)
    with pytest.raises(ApprovalNotFound):
        decide(Approval(), by)


def test_an_approval_is_overdue_by_the_clock_that_recorded_it() -> None:
    pending = approval(expires_after_s=60)
    assert pending.expires_at == AT + timedelta(seconds=60)
    assert not pending.is_overdue(AT + timedelta(seconds=59.9))
    assert pending.is_overdue(AT + timedelta(seconds=60))
    assert not approval(*DECIDED).is_overdue(AT + timedelta(days=1))
    assert approval(expires_after_s=0).expires_at is None


def test_calls_before_the_first_gated_one_are_made_and_the_rest_waits() -> None:
    """TOOL-2: the order of the model is kept."""

    def gated(one: OpenCall) -> bool:
        return one.call.name == "refund"

    def plan(*facts: e.RunEvent) -> object:
        return next_action(fold_run(RUN_ID, facts), TurnLimits(), gated=gated)

    assert plan(*OPENED, *asked_for(LOOK, REFUND, MAIL, AGAIN)) == CallTools(calls=(LOOK,))
    assert plan(*ASKED) == AskApproval(calls=(REFUND, AGAIN))
    assert plan(*OPENED, *asked_for(LOOK, MAIL)) == CallTools(calls=(LOOK, MAIL))


def opened(decisions: dict[str, e.CallDecision]) -> tuple[e.RunEvent, ...]:
    [decided] = decide(approval(), Decide(verdicts=decisions, opens=NEXT))
    assert isinstance(decided, e.ApprovalDecided)
    create = run_opened_by(WAITS.run, decided, max_attempts=3)
    return (*given().when(create), STARTED)


def test_the_run_that_goes_on_has_the_calls_open_and_knows_what_was_said() -> None:
    facts = opened({"c2": YES, "c4": NO})
    created = facts[0]
    assert isinstance(created, e.RunCreated)
    assert created.input == (
        QUESTION,
        AssistantMessage(tool_calls=(LOOK, REFUND, MAIL, AGAIN)),
        ToolMessage(tool_call_id="c1", content="seen"),
    )
    assert (created.continued_from_run_id, created.chain_root_run_id) == (RUN_ID, RUN_ID)
    assert created.queue == QueueSpec(max_attempts=3)
    run = fold_run(NEXT, facts)
    assert [(one.call, one.decision) for one in run.open_calls] == [(REFUND, YES), (MAIL, None), (AGAIN, NO)]
    assert next_action(run, TurnLimits()) == CallTools(calls=(REFUND, MAIL, AGAIN))


def test_a_job_of_a_batch_is_gone_on_from_as_a_job_of_its_own() -> None:
    batch = QueueSpec(lane="bulk", priority=5, max_attempts=2, source=BatchItem(batch_id=NEXT, number=1))
    created = e.RunCreated(
        tenant="acme", kind=e.RunKind.AGENT, agent="support", input=(QUESTION,), queue=batch
    )
    waits = given(created, *ASKED[1:]).after(ENDING)
    [decided] = DECIDED
    assert isinstance(decided, e.ApprovalDecided)
    create = run_opened_by(waits.run, decided, max_attempts=9)
    assert create.queue == QueueSpec(lane="bulk", priority=5, max_attempts=2)


def test_calls_left_open_have_to_be_decided_of() -> None:
    facts = opened({"c2": YES, "c4": YES})
    created = facts[0]
    assert isinstance(created, e.RunCreated)
    [decided] = DECIDED
    assert isinstance(decided, e.ApprovalDecided)
    create = run_opened_by(WAITS.run, decided, 1)
    for wrong in ({}, {"c1": YES}, {"c9": YES}):
        bad = CreateRun(tenant="acme", agent="support", input=create.input, decisions=wrong)
        given().refuses(bad, InvalidInput)


def test_a_turn_that_starts_again_on_another_link_has_its_approved_calls_again() -> None:
    """CHAIN-6: their results are in the ledger; without them the transcript would be broken."""
    begun = given(*opened({"c2": YES, "c4": YES}))
    invoked = begun.after(InvokeTool(call_id="c2", effect=e.ToolEffect.WRITE, call_key="k"))
    primary, fallback = Link(provider="p", model="m"), Link(provider="q", model="m")
    switched = e.ModelFallbackUsed(primary=primary, fallback=fallback, reason="down", step=1, restarted=True)
    run = given(*invoked.facts, returned(REFUND, "ok"), switched).run
    assert [one.call for one in run.open_calls] == [REFUND, MAIL, AGAIN]


def test_what_a_run_did_before_it_waited_is_not_what_its_next_calls_stand_for() -> None:
    """CONT-2, TOOL-2: the run that goes on is in the middle of the turn, and has made those calls."""
    waited = inherited([(RUN_ID, WAITS.facts)])
    assert waited.answer(LOOK.name, LOOK.arguments) is None
    interrupted = inherited([(RUN_ID, ASKED)])
    assert interrupted.answer(LOOK.name, LOOK.arguments) is not None
    second = call_key(RUN_ID, LOOK.name, canonical_arguments(LOOK.arguments), 1)
    assert waited.call_key(RUN_ID, LOOK.name, LOOK.arguments) == second


def test_a_run_that_went_on_and_was_interrupted_is_taken_up_where_it_went_on() -> None:
    """CONT-2: one look was made before the wait, one after it; only the second is answered."""
    then = (*opened({"c2": YES, "c4": YES}), invoking(REFUND), returned(REFUND, "done"))
    ledger = inherited([(RUN_ID, WAITS.facts), (NEXT, then)])
    answer = ledger.answer(REFUND.name, REFUND.arguments)
    assert answer is not None
    assert (answer.run_id, answer.output) == (NEXT, "done")
    assert ledger.answer(LOOK.name, LOOK.arguments) is None
