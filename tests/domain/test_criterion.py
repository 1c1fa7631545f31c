"""When an answer is judged, what a judge's words mean, and what follows from them (CHAIN-13)."""

import pytest

from domain import events as e
from domain.agent import AgentDefinition
from domain.commands import CompleteRun
from domain.criterion import (
    AskJudge,
    Judgement,
    NoVerdict,
    TellUnmet,
    judgement_in,
    question,
    unavailable,
)
from domain.events.side import AnswerSentBack, CriterionJudged
from domain.failure import ErrorClass, RunError
from domain.messages import UserMessage
from domain.refusals import OutOfTurn
from domain.run import Run
from domain.turn import Action, CallModel, Complete, GiveUp, TellMissing, TurnLimits, next_action
from tests.domain.beside import JUDGED
from tests.domain.facts import CREATED, QUESTION, calling, replied, says
from tests.domain.given import given

STARTED = e.RunStarted(host="host-1", definition=JUDGED)
ANSWERED = (CREATED, STARTED, calling(1), replied(1, says("Soon.")))
UNMET, MET = (CriterionJudged(met=met, reason="It names no day.") for met in (False, True))
BACK = AnswerSentBack(round=1, message="Name the day.")
AGAIN = (calling(2), replied(2, says("On Tuesday.")))


def lacks(run: Run) -> str | None:
    return "the answer is no JSON"


def planned(*past: e.RunEvent, **limits: int) -> Action:
    return next_action(given(*past).run, TurnLimits(**limits))


class TestPlan:
    def test_an_answer_is_judged(self) -> None:
        assert planned(*ANSWERED) == AskJudge()

    def test_one_that_meets_the_criterion_ends_the_turn(self) -> None:
        assert planned(*ANSWERED, MET) == Complete()

    def test_another_is_sent_back(self) -> None:
        assert planned(*ANSWERED, UNMET) == TellUnmet(reason="It names no day.")

    def test_then_the_model_goes_on_and_its_next_answer_is_judged(self) -> None:
        assert planned(*ANSWERED, UNMET, BACK) == CallModel(step=2)
        assert given(*ANSWERED, UNMET, BACK).run.transcript == (
            QUESTION,
            says("Soon."),
            UserMessage(content="Name the day."),
        )
        assert planned(*ANSWERED, UNMET, BACK, *AGAIN) == AskJudge()

    @pytest.mark.parametrize("limits", [{}, {"max_steps": 2}], ids=["its rounds", "its steps"])
    def test_when_they_are_used_up_the_run_fails(self, limits: dict[str, int]) -> None:
        action = planned(*ANSWERED, UNMET, BACK, *AGAIN, UNMET, **limits)
        assert isinstance(action, GiveUp)
        assert (action.error.type, action.error.error_class) == ("criterion_not_met", ErrorClass.INVALID)

    def test_the_deliverable_comes_first(self) -> None:
        """CHAIN-9."""
        run = given(*ANSWERED).run
        assert isinstance(next_action(run, TurnLimits(), lacks), TellMissing)

    def test_an_answer_that_is_carried_on_is_not_whole(self) -> None:
        """CHAIN-8."""
        begun = replied(1, says("On "), finish=e.FinishReason.LENGTH)
        assert planned(CREATED, STARTED, calling(1), begun) == CallModel(step=2)

    def test_without_a_criterion_nobody_is_asked(self) -> None:
        plain = AgentDefinition(name="support", provider="one", model="m")
        past = (CREATED, e.RunStarted(host="h", definition=plain), *ANSWERED[2:])
        assert planned(*past) == Complete()


@pytest.mark.parametrize("verdicts", [(), (UNMET,)], ids=["unasked", "unmet"])
def test_a_run_is_not_completed_over_its_judges_head(verdicts: tuple[e.RunEvent, ...]) -> None:
    given(*ANSWERED, *verdicts).refuses(CompleteRun(), OutOfTurn, "criterion")


class TestWords:
    @pytest.mark.parametrize(
        "text",
        [
            '{"met": true, "reason": "It does."}',
            ' {"reason":"It does.","met":true,"score":9}\n',
            '```json\n{"met": true, "reason": "It does."}\n```',
            '```\n{"met": true, "reason": "It does."}\n```',
        ],
    )
    def test_a_verdict_is_read(self, text: str) -> None:
        assert judgement_in(text) == Judgement(met=True, reason="It does.")

    @pytest.mark.parametrize("text", ["", "Yes.", "{}", '{"met": "yes", "reason": ""}', "[true]", "\ud800"])
    def test_other_words_are_none(self, text: str) -> None:
        with pytest.raises(NoVerdict):
            judgement_in(text)

    def test_a_verdict_without_a_reason_says_so(self) -> None:
        assert judgement_in('{"met": false, "reason": " "}').reason == "no reason was given"

    def test_the_judge_is_told_the_criterion_and_all_that_was_said(self) -> None:
        asked = question("It names a day.", (QUESTION, says("Soon.")))
        assert asked.startswith("The criterion:\n\nIt names a day.")
        assert asked.endswith("[user]\nwhere is order 7?\n\n[agent]\nSoon.")


def test_a_judge_that_cannot_be_asked_has_an_error_type_of_its_own() -> None:
    down = RunError(message="down", type="chain_exhausted", error_class=ErrorClass.PROVIDER, retry_after_s=3)
    assert unavailable(down) == RunError(
        message="nobody could judge the answer: down",
        type="judge_unavailable",
        error_class=ErrorClass.PROVIDER,
        retry_after_s=3,
    )
