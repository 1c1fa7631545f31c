"""A conversation over several runs."""

from hypothesis import given
from hypothesis import strategies as st

from domain.events import SessionTurnAdded
from domain.ids import Version
from domain.messages import Message, ToolCall, ToolMessage, UserMessage, flaw_in, with_result
from domain.session import Session, fold, turn_of
from tests.domain import given as run
from tests.domain.facts import OPENED, QUESTION, asked_for, call, calling, invoking, replied, returned, says

C1, C2, C3 = call("c1"), call("c2"), call("c3")


def result(call_id: str, text: str = "done") -> ToolMessage:
    return ToolMessage(tool_call_id=call_id, content=text)


def test_a_session_is_its_turns_one_after_the_other() -> None:
    first = SessionTurnAdded(run_id=run.RUN_ID, messages=(QUESTION, says("It ships today.")))
    second = SessionTurnAdded(run_id=run.RUN_ID, messages=(UserMessage(content="thanks"), says("Welcome.")))
    assert fold([]) == Session()
    assert fold([first, second]) == Session(version=Version(2), messages=(*first.messages, *second.messages))


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
