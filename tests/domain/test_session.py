"""A conversation over several runs."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from domain.events import Recorded, SessionEvent, SessionTurnAdded, SessionTurnBegun, SessionTurnQueued
from domain.ids import RunId, Version, session_stream
from domain.messages import Message, ToolCall, ToolMessage, UserMessage, flaw_in, with_result
from domain.session import Session, Turn, fold, turn_of
from tests.domain import given as run
from tests.domain.facts import OPENED, QUESTION, asked_for, call, calling, invoking, replied, returned, says

C1, C2, C3 = call("c1"), call("c2"), call("c3")


def result(call_id: str, text: str = "done") -> ToolMessage:
    return ToolMessage(tool_call_id=call_id, content=text)


def test_a_session_is_its_turns_one_after_the_other() -> None:
    first = SessionTurnAdded(run_id=run.RUN_ID, messages=(QUESTION, says("It ships today.")))
    second = SessionTurnAdded(run_id=run.RUN_ID, messages=(UserMessage(content="thanks"), says("Welcome.")))
    assert fold([]) == Session()
    assert told(first, second) == Session(version=Version(2), messages=(*first.messages, *second.messages))


def test_a_session_is_one_runs_until_its_turn_is_added() -> None:
    """Two runs of one session never interleave: whoever comes later is behind those that came before."""
    begun = told(begins(A), waits(B), waits(C))
    assert [turn.run_id for turn in begun.before(B)] == [A]
    assert [turn.run_id for turn in begun.before(C)] == [A, B]
    assert [turn.run_id for turn in begun.before(D)] == [A, B, C]
    over = told(begins(A), waits(B), waits(C), SessionTurnAdded(run_id=A, messages=()))
    assert [turn.run_id for turn in over.before(C)] == [B]
    assert over.before(B) == ()


def test_a_run_that_begins_leaves_those_before_it_behind() -> None:
    """They have ended without their turn, or it could not have begun."""
    assert [turn.run_id for turn in told(waits(A), waits(B), begins(B), waits(C)).before(C)] == [B]


def order(session: Session, run_id: RunId, in_place_of: RunId | None = None) -> list[RunId]:
    return [turn.run_id for turn in session.before(run_id, in_place_of)]


def test_a_run_that_continues_the_one_that_had_begun_goes_before_all_that_wait() -> None:
    """CONT-1: what was asked first is answered first."""
    interrupted = told(begins(A), waits(B))
    assert order(interrupted, C, in_place_of=A) == []
    overtaken = told(begins(A), waits(B), waits(D), begins(B), waits(C, in_place_of=A))
    assert order(overtaken, C, in_place_of=A) == [B]
    assert order(overtaken, D) == [B, C]


def test_a_run_that_continues_one_that_waited_has_its_place() -> None:
    """CONT-1."""
    interrupted = told(begins(A), waits(B), waits(C))
    assert order(interrupted, D, in_place_of=B) == [A]
    queued = told(begins(A), waits(B), waits(C), waits(D, in_place_of=B))
    assert order(queued, D) == [A]
    assert order(queued, C) == [A, D]


def test_a_turn_is_over_some_time_after_it_was_recorded() -> None:
    [turn] = told(begins(A)).before(B)
    assert turn == Turn(run_id=A, until=AT + timedelta(seconds=60))


A, B, C, D = (RunId(UUID(int=number)) for number in range(4))
AT = datetime(2026, 1, 1, tzinfo=UTC)


def begins(run_id: RunId) -> SessionTurnBegun:
    return SessionTurnBegun(run_id=run_id, limit_s=60)


def waits(run_id: RunId, in_place_of: RunId | None = None) -> SessionTurnQueued:
    return SessionTurnQueued(run_id=run_id, limit_s=60, in_place_of=in_place_of)


def told(*facts: SessionEvent) -> Session:
    return fold(
        Recorded(
            stream_id=session_stream("acme", "s"),
            sequence=Version(number),
            position=number,
            at=AT,
            tenant="acme",
            event=fact,
        )
        for number, fact in enumerate(facts, 1)
    )


def test_a_turn_is_its_input_its_replies_and_their_results() -> None:
    done = run.given(
        *OPENED, *asked_for(C1), invoking(C1), returned(C1, "shipped"), calling(2), replied(2, says("Today."))
    )
    assert turn_of(done.run) == SessionTurnAdded(
        run_id=run.RUN_ID,
        messages=(QUESTION, says("", C1), result("c1", "shipped"), says("Today.")),
    )


def test_the_flaw_of_a_message_list_is_named() -> None:
    assert flaw_in(()) is None
    assert flaw_in((QUESTION, says("", C1, C2), result("c2"), result("c1"), says("Today."))) is None
    assert flaw_in((says("", C1), result("c1"), says("", C1), result("c1"))) is None
    assert flaw_in((result("c1"),)) == "messages[0] is the result of no tool call before it: 'c1'"
    assert flaw_in((says("", C1), result("c1"), result("c1"))) is not None
    assert flaw_in((says("", C1), QUESTION)) == "messages[1] comes before the result of tool call 'c1'"
    assert flaw_in((says("", C1, C2), result("c1"))) == "tool call 'c2' has no result"
    assert flaw_in((says("", C1, C1), result("c1"))) == "messages[0] has two tool calls of one id"


@given(order=st.permutations([C1, C2, C3]))
def test_results_that_come_in_any_order_make_one_list(order: list[ToolCall]) -> None:
    messages: tuple[Message, ...] = (QUESTION, says("", C1, C2, C3))
    for done in order:
        messages = with_result(messages, result(done.id))
    assert messages == (QUESTION, says("", C1, C2, C3), result("c1"), result("c2"), result("c3"))
    assert flaw_in(messages) is None


def test_a_result_of_no_call_is_kept_where_it_came() -> None:
    """Folding never refuses."""
    assert with_result((), result("c9")) == (result("c9"),)
    assert with_result((says("", C1),), result("c9")) == (says("", C1), result("c9"))
