"""Folding never refuses: history is not up for debate, however odd."""

from typing import cast, get_args

from hypothesis import given
from hypothesis import strategies as st

from domain.events import RunEvent
from domain.evolve import evolve, fold
from domain.ids import RunId
from domain.run import Run
from domain.session import turn_of
from domain.turn import TurnLimits, next_action
from tests.domain.given import RUN_ID
from tests.domain.strategies import of_type

anything = st.one_of([of_type(kind) for kind in get_args(RunEvent)])
histories = cast("st.SearchStrategy[list[RunEvent]]", st.lists(anything, max_size=8))


@given(history=histories)
def test_any_history_can_be_folded_and_planned_from(history: list[RunEvent]) -> None:
    run = fold(RunId(RUN_ID), history)
    assert run.version == len(history)
    assert turn_of(run).run_id == RUN_ID
    assert next_action(run, TurnLimits()) == next_action(run, TurnLimits())


@given(history=histories, later=histories)
def test_folding_may_stop_and_go_on_anywhere(history: list[RunEvent], later: list[RunEvent]) -> None:
    run: Run = fold(RunId(RUN_ID), history)
    for event in later:
        run = evolve(run, event)
    assert run == fold(RunId(RUN_ID), [*history, *later])
