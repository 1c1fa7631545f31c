"""What the runs below an interrupted one mean for its continuation (CONT)."""

from uuid import UUID

import msgspec

from domain import events as e
from domain.continuation import Blocked, Continue, PastRun, judge, open_children
from domain.events import ContinuationBlock as Block
from domain.evolve import fold
from domain.ids import RunId
from domain.ledger import RecordedResult
from tests.domain.facts import (
    CREATED,
    DEFINITION,
    STARTED,
    asked_for,
    call,
    calling,
    invoking,
    replied,
    returned,
    says,
)
from tests.domain.given import RUN_ID
from tests.domain.playing import ORPHAN

CHILD = RunId(UUID(int=21))
ASK, REFUND = call("ask", "helper"), call("pay", "refund")
LEAD = msgspec.structs.replace(DEFINITION, agents=("helper",))
OPENED = (msgspec.structs.replace(CREATED, session_id="s"), msgspec.structs.replace(STARTED, definition=LEAD))
BELOW = msgspec.structs.replace(CREATED, agent="helper", parent_run_id=RUN_ID, root_run_id=RUN_ID, depth=1)
EXTERNAL = e.ToolEffect.EXTERNAL


def asking(*below: e.RunEvent) -> PastRun:
    """An orphan that was waiting for its helper; these are that one's facts, if it had come to be at all."""
    asked = (*OPENED, *asked_for(ASK), invoking(ASK, effect=EXTERNAL))
    if not below:
        return PastRun(run_id=RUN_ID, events=(*asked, ORPHAN))
    child = PastRun(run_id=CHILD, events=(BELOW, STARTED, *below))
    started = e.ChildRunStarted(run_id=CHILD, agent="helper", cause="ask")
    return PastRun(run_id=RUN_ID, events=(*asked, started, ORPHAN), children={"ask": (child,)})


def continued(past: PastRun) -> Continue:
    verdict = judge([past], 1)
    assert isinstance(verdict, Continue)
    return verdict


def test_an_agent_that_was_never_begun_has_done_nothing() -> None:
    """CONT-3: its strongest effect is only what it might have had."""
    assert continued(asking()).ledger.interrupted_child("helper", ASK.arguments) is None


def test_an_agent_that_was_interrupted_between_its_calls_is_gone_on_from() -> None:
    """CONT-2, CONT-3: what it has had done is on its own record."""
    paid = (
        *asked_for(REFUND),
        invoking(REFUND, effect=EXTERNAL),
        returned(REFUND, "paid"),
        calling(2),
        ORPHAN,
    )
    ledger = continued(asking(*paid)).ledger
    assert ledger.answer("helper", ASK.arguments) is None
    assert ledger.interrupted_child("helper", ASK.arguments) == CHILD


def test_an_agent_that_was_interrupted_in_such_a_call_blocks_its_root() -> None:
    """CONT-3"""
    past = asking(*asked_for(REFUND), invoking(REFUND, effect=EXTERNAL), ORPHAN)
    verdict = judge([past], 1)
    assert isinstance(verdict, Blocked)
    assert verdict.cause is Block.OUTCOME_UNKNOWN
    assert verdict.remedy.endswith(f"/runs/{CHILD}/tools/pay/resolve")


def test_a_word_on_the_agents_own_call_lifts_the_doubt_and_so_does_one_on_the_whole() -> None:
    """CONT-3"""
    at_it = (*asked_for(REFUND), invoking(REFUND, effect=EXTERNAL), ORPHAN)
    continued(asking(*at_it, e.ToolResolved(call_id="pay", tool="refund", output="paid")))
    whole = e.ToolResolved(call_id="ask", tool="helper", output="it has paid")
    past = asking(*at_it)
    told = msgspec.structs.replace(past, events=(*past.events, whole), children={})
    found = continued(told).ledger.answer("helper", ASK.arguments)
    assert found == RecordedResult(run_id=RUN_ID, call_id="ask", output="it has paid")


def test_an_answer_that_came_while_the_parent_was_dying_is_known() -> None:
    """CONT-2: the child's stream has it, though the parent's does not."""
    answered = (calling(1), replied(1, says("It is paid.")), e.RunCompleted(answer="It is paid."))
    found = continued(asking(*answered)).ledger.answer("helper", ASK.arguments)
    assert found == RecordedResult(run_id=RUN_ID, call_id="ask", output="It is paid.")


def test_only_the_runs_of_calls_without_a_result_are_looked_into() -> None:
    past = asking(ORPHAN)
    run = fold(RUN_ID, past.events)
    assert open_children(run, past.events) == {"ask": CHILD}
    done = (*past.events[:-1], returned(ASK, "done"), ORPHAN)
    assert open_children(fold(RUN_ID, done), done) == {}


def test_a_continuation_that_died_before_it_had_asked_again_still_knows_whom_it_goes_on_from() -> None:
    """CONT-2: a call that began twice and whose agent began once is the same call."""
    first = asking(calling(1), ORPHAN)
    created = msgspec.structs.replace(CREATED, session_id="s", continued_from_run_id=RUN_ID)
    second = PastRun(
        run_id=RunId(UUID(int=22)),
        events=(created, OPENED[1], *asked_for(ASK), invoking(ASK, effect=EXTERNAL), ORPHAN),
    )
    verdict = judge([first, second], 2)
    assert isinstance(verdict, Continue)
    assert verdict.ledger.interrupted_child("helper", ASK.arguments) == CHILD
