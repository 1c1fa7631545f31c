"""Recorded tool results, and whom they answer (CHAIN-6)."""

from hypothesis import given
from hypothesis import strategies as st

from domain.ledger import Ledger, RecordedResult
from tests.domain.given import RUN_ID

TOOLS = st.sampled_from(["charge", "get_order"])
ARGUMENTS = st.sampled_from(["{}", '{"id":7}', '{ "id": 7.0 }', "not json"])
CALLS = st.lists(st.tuples(TOOLS, ARGUMENTS), max_size=6)


def result(number: int) -> RecordedResult:
    return RecordedResult(run_id=RUN_ID, call_id=f"c{number}", output=f"result {number}")


def having(*calls: tuple[str, str]) -> Ledger:
    """What an earlier link's calls have left, numbered from 0."""
    ledger = Ledger()
    for number, (tool, arguments) in enumerate(calls):
        ledger = ledger.after_result(tool, arguments, result(number))
    return ledger.for_next_link()


def answers(ledger: Ledger, *calls: tuple[str, str]) -> list[str | None]:
    """What the calls of one link are answered with; None for those that run, and are recorded."""
    found: list[str | None] = []
    for tool, arguments in calls:
        recorded = ledger.answer(tool, arguments)
        found.append(recorded.output if recorded else None)
        if recorded:
            ledger = ledger.after_answer(tool, arguments)
        else:
            ledger = ledger.after_result(tool, arguments, result(99))
    return found


A, B = ("charge", '{"id":7}'), ("charge", '{"id":8}')


def test_what_an_earlier_link_completed_answers() -> None:
    assert answers(having(A), A) == ["result 0"]


def test_equal_is_the_tool_and_what_the_arguments_say() -> None:
    assert answers(having(A), ("charge", ' { "id" : 7.0 } ')) == ["result 0"]
    assert answers(having(A), B, ("refund", '{"id":7}')) == [None, None]


def test_a_failure_is_a_result_and_answers_too() -> None:
    declined = RecordedResult(run_id=RUN_ID, call_id="c1", output="declined", failed=True)
    ledger = Ledger().after_result(*A, declined).for_next_link()
    assert ledger.answer(*A) == declined


def test_equal_calls_of_one_link_are_new_calls() -> None:
    assert answers(Ledger(), A, A) == [None, None]


def test_two_equal_calls_get_the_two_recorded_results_in_order() -> None:
    assert answers(having(A, A), A, A) == ["result 0", "result 1"]


def test_one_more_equal_call_than_was_recorded_is_a_new_one() -> None:
    assert answers(having(A), A, A, A) == ["result 0", None, None]


def test_a_third_link_is_answered_with_what_both_before_it_ran() -> None:
    second = having(A).after_answer(*A).after_result(*A, result(1))
    assert answers(second.for_next_link(), A, A, A) == ["result 0", "result 1", None]


def test_another_link_begins_at_the_first_result_again() -> None:
    assert answers(having(A).after_answer(*A).for_next_link(), A) == ["result 0"]


@given(links=st.lists(CALLS, max_size=4))
def test_a_body_runs_as_often_as_the_neediest_link_asks(links: list[list[tuple[str, str]]]) -> None:
    """Never twice for what was done: however many links repeat a call, it runs as often as one asked."""
    ledger = Ledger()
    runs: dict[str, int] = {}
    most: dict[str, int] = {}
    for calls in links:
        asked: dict[str, int] = {}
        for tool, arguments in calls:
            key = f"{tool} {arguments.replace(' ', '').replace('7.0', '7')}"
            asked[key] = asked.get(key, 0) + 1
            most[key] = max(most.get(key, 0), asked[key])
            recorded = ledger.answer(tool, arguments)
            if recorded is not None:
                assert recorded.output == f"{key} {asked[key] - 1}"
                ledger = ledger.after_answer(tool, arguments)
            else:
                done = RecordedResult(run_id=RUN_ID, call_id="c", output=f"{key} {runs.get(key, 0)}")
                runs[key] = runs.get(key, 0) + 1
                ledger = ledger.after_result(tool, arguments, done)
        ledger = ledger.for_next_link()
    assert runs == most
