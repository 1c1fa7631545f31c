"""Recorded tool results, and whom they answer (CHAIN-6)."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.agent import Link
from domain.events import Event, ModelFallbackUsed, ToolAnswered, ToolFailure, ToolResolved
from domain.ids import RunId
from domain.ledger import Ledger, RecordedResult, call_key, evolve, inherited
from tests.domain.facts import call, invoking, returned, tool_failed
from tests.domain.given import RUN_ID

TOOLS = st.sampled_from(["charge", "get_order"])
ARGUMENTS = st.sampled_from(["{}", '{"id":7}', '{ "id": 7.0 }', "not json"])
CALLS = st.lists(st.tuples(TOOLS, ARGUMENTS), max_size=6)


def result(number: int) -> RecordedResult:
    return RecordedResult(run_id=RUN_ID, call_id=f"c{number}", output=f"result {number}")


def ran(ledger: Ledger, made: tuple[str, str], came_to: RecordedResult) -> Ledger:
    """A body ran for a call, to this result."""
    return ledger.after_invocation(came_to.call_id, *made, "key").after_result(came_to)


def having(*calls: tuple[str, str]) -> Ledger:
    """What an earlier link's calls have left, numbered from 0."""
    ledger = Ledger()
    for number, made in enumerate(calls):
        ledger = ran(ledger, made, result(number))
    return ledger.for_next_link()


def answers(ledger: Ledger, *calls: tuple[str, str], harmless: bool = False) -> list[str | None]:
    """What the calls of one link are answered with; None for those that run, and are recorded."""
    found: list[str | None] = []
    for tool, arguments in calls:
        recorded = ledger.answer(tool, arguments, harmless=harmless)
        found.append(recorded.output if recorded else None)
        if recorded:
            ledger = ledger.after_answer(tool, arguments)
        else:
            ledger = ran(ledger, (tool, arguments), result(99))
    return found


A, B = ("charge", '{"id":7}'), ("charge", '{"id":8}')


def test_what_an_earlier_link_completed_answers() -> None:
    assert answers(having(A), A) == ["result 0"]


def test_equal_is_the_tool_and_what_the_arguments_say() -> None:
    assert answers(having(A), ("charge", ' { "id" : 7.0 } ')) == ["result 0"]
    assert answers(having(A), B, ("refund", '{"id":7}')) == [None, None]


def test_a_failure_is_a_result_and_answers_too() -> None:
    declined = RecordedResult(run_id=RUN_ID, call_id="c1", output="declined", failed=True)
    ledger = ran(Ledger(), A, declined).for_next_link()
    assert ledger.answer(*A) == declined


def test_equal_calls_of_one_link_are_new_calls() -> None:
    assert answers(Ledger(), A, A) == [None, None]


def test_two_equal_calls_get_the_two_recorded_results_in_order() -> None:
    assert answers(having(A, A), A, A) == ["result 0", "result 1"]


def test_one_more_equal_call_than_was_recorded_does_not_have_its_effect_again() -> None:
    """CHAIN-6: an earlier link completed this very call; whether it is meant anew nobody can tell."""
    assert answers(having(A), A, A, A) == ["result 0"] * 3


def test_one_more_equal_call_of_a_tool_that_only_reads_looks_again() -> None:
    """A poll would otherwise see its first answer until the turn's steps are used up."""
    assert answers(having(A), A, A, A, harmless=True) == ["result 0", None, None]


def test_a_third_link_is_answered_with_what_both_before_it_ran() -> None:
    second = ran(having(A).after_answer(*A), A, result(1))
    assert answers(second.for_next_link(), A, A, A) == ["result 0", "result 1", "result 1"]


def test_what_a_link_ran_itself_never_answers_its_own_calls() -> None:
    """CHAIN-6: not even where an earlier link asked for the same in vain."""
    ledger = Ledger().after_invocation("c0", *A, "key").for_next_link()
    ledger = ledger.after_invocation("c1", *A, "key")
    ledger = ledger.after_invocation("c2", *A, "another key").after_result(result(2))
    assert ledger.answer(*A) is None
    assert ledger.for_next_link().answer(*A) is None, "the first of three came to nothing"


def test_another_link_begins_at_the_first_result_again() -> None:
    assert answers(having(A).after_answer(*A).for_next_link(), A) == ["result 0"]


OTHER_RUN = RunId(UUID(int=9))
SWITCHED = ModelFallbackUsed(
    primary=Link(provider="one", model="m"), fallback=Link(provider="two", model="m"), reason="", step=1
)
CHARGE = call("c1", *A)


def told(*facts: Event, run_id: RunId = RUN_ID) -> Ledger:
    """The ledger after these facts of a run."""
    ledger = Ledger()
    for fact in facts:
        ledger = evolve(ledger, run_id, fact)
    return ledger


def test_a_switch_makes_what_was_run_answer() -> None:
    ran = (invoking(CHARGE), returned(CHARGE, "charged"))
    assert told(*ran).answer(*A) is None
    assert told(*ran, SWITCHED).answer(*A) == RecordedResult(run_id=RUN_ID, call_id="c1", output="charged")


def test_a_link_is_answered_as_often_as_it_asks_and_the_next_one_again() -> None:
    answered = ToolAnswered(
        call_id="c7",
        tool="charge",
        arguments='{ "id": 7 }',
        output="charged",
        recorded_run_id=RUN_ID,
        recorded_call_id="c1",
    )
    past = (invoking(CHARGE), returned(CHARGE, "charged"), SWITCHED, answered)
    assert told(*past).answer(*A) is not None
    assert told(*past).answer(*A, harmless=True) is None
    assert told(*past, SWITCHED).answer(*A) is not None


@pytest.mark.parametrize(
    ("failure", "recorded"),
    [
        (ToolFailure.RAISED, True),
        (ToolFailure.TIMED_OUT, True),
        (ToolFailure.CANCELLED, False),
        (ToolFailure.UNKNOWN_TOOL, False),
        (ToolFailure.INVALID_ARGUMENTS, False),
    ],
)
def test_a_failure_answers_if_a_body_ran_to_it(failure: ToolFailure, recorded: bool) -> None:
    ledger = told(invoking(CHARGE), tool_failed(CHARGE, "declined", failure), SWITCHED)
    expected = RecordedResult(run_id=RUN_ID, call_id="c1", output="declined", failed=True)
    assert ledger.answer(*A) == (expected if recorded else None)


def test_a_body_without_a_result_answers_nothing() -> None:
    """CONT-2: only a call with a record is answered from it."""
    assert told(invoking(CHARGE), SWITCHED).answer(*A) is None


def test_a_result_of_no_body_is_nobodys_answer() -> None:
    assert told(returned(CHARGE, "charged"), SWITCHED) == Ledger()


def test_a_call_id_that_comes_again_is_another_call() -> None:
    refund = call("c1", "refund", "{}")
    past = (invoking(CHARGE), returned(CHARGE, "charged"), invoking(refund), returned(refund, "refunded"))
    ledger = told(*past, SWITCHED)
    assert [found.output for found in (ledger.answer(*A), ledger.answer("refund", "{}")) if found] == [
        "charged",
        "refunded",
    ]


def test_what_an_interrupted_run_completed_answers_the_run_that_continues_it() -> None:
    """CONT-2."""
    interrupted = (OTHER_RUN, (invoking(CHARGE), returned(CHARGE, "charged")))
    assert inherited([interrupted]).answer(*A) == RecordedResult(
        run_id=OTHER_RUN, call_id="c1", output="charged"
    )


def test_a_call_beyond_what_an_interrupted_run_did_is_a_new_one() -> None:
    """CONT-2: only a call with no record runs, and with the run beginning anew there is no doubt which."""
    ledger = inherited([(OTHER_RUN, (invoking(CHARGE), returned(CHARGE, "charged")))])
    assert answers(ledger, A, A) == ["charged", None]


def test_an_interrupted_call_is_made_again_under_its_own_key() -> None:
    """TOOL-1: the outside recognises it, whatever else was called before it this time."""
    first, second = call("c1", *A), call("c2", *A)
    interrupted = (
        invoking(first),
        invoking(second),
        returned(second, "charged"),  # the two ran side by side, and the first one never came back
    )
    ledger = inherited([(OTHER_RUN, interrupted)])
    assert ledger.answer(*A) is None
    assert ledger.call_key(OTHER_RUN, *A) == "key-c1"
    again = evolve(ledger, RUN_ID, invoking(call("c9", *A)))
    assert again.answer(*A) == RecordedResult(run_id=OTHER_RUN, call_id="c2", output="charged")
    new = again.after_answer(*A).call_key(OTHER_RUN, *A)
    assert new == call_key(OTHER_RUN, "charge", '{"id":7}', 2)


def test_what_somebody_found_out_about_a_call_is_its_result() -> None:
    """CONT-3: the truth answers the run that continues."""
    resolved = ToolResolved(call_id="c1", tool="charge", output="declined", failed=True)
    ledger = inherited([(OTHER_RUN, (invoking(CHARGE), resolved))])
    assert ledger.answer(*A) == RecordedResult(run_id=OTHER_RUN, call_id="c1", output="declined", failed=True)


def test_keys_of_equal_calls_differ_and_are_those_of_the_chains_root() -> None:
    """TOOL-1."""
    ledger = Ledger()
    keys = []
    for number in range(3):
        keys.append(ledger.call_key(OTHER_RUN, *A))
        ledger = ran(ledger, A, result(number))
    assert keys == [call_key(OTHER_RUN, "charge", '{"id":7}', number) for number in range(3)]


@given(links=st.lists(CALLS, max_size=4))
def test_a_body_that_only_reads_runs_as_often_as_the_neediest_link_asks(
    links: list[list[tuple[str, str]]],
) -> None:
    """However many links repeat a call, it runs as often as one of them asked."""
    assert bodies(links, harmless=True) == {
        key: max(sum(named(*call) == key for call in calls) for calls in links)
        for key in {named(*call) for calls in links for call in calls}
    }


@given(links=st.lists(CALLS, max_size=4))
def test_a_body_runs_only_for_the_link_that_was_the_first_to_ask(links: list[list[tuple[str, str]]]) -> None:
    """CHAIN-6: what an earlier link completed is never done again, whoever asks and how often."""
    expected: dict[str, int] = {}
    for calls in links:
        asked = [named(*call) for call in calls]
        expected = {key: asked.count(key) for key in asked} | expected
    assert bodies(links, harmless=False) == expected


def named(tool: str, arguments: str) -> str:
    """The same for equal calls."""
    return f"{tool} {arguments.replace(' ', '').replace('7.0', '7')}"


def bodies(links: list[list[tuple[str, str]]], *, harmless: bool) -> dict[str, int]:
    """How often each call's body runs when these links make these calls, one link after the other."""
    ledger = Ledger()
    runs: dict[str, int] = {}
    for calls in links:
        for tool, arguments in calls:
            if ledger.answer(tool, arguments, harmless=harmless) is not None:
                ledger = ledger.after_answer(tool, arguments)
                continue
            key = named(tool, arguments)
            runs[key] = runs.get(key, 0) + 1
            done = RecordedResult(run_id=RUN_ID, call_id="c", output=f"{key} {runs[key]}")
            ledger = ran(ledger, (tool, arguments), done)
        ledger = ledger.for_next_link()
    return runs
