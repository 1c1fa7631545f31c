"""How a turn comes to its answer: carried on past an output limit, nudged to its deliverable (CHAIN-8, 9)."""

import pytest

from domain import events as e
from domain.commands import BeginModelCall, Nudge, RecordQueueing, RecordReply
from domain.failure import ErrorClass
from domain.messages import AssistantMessage, ProviderBlocks, UserMessage
from domain.refusals import OutOfTurn
from domain.run import Run
from domain.turn import Action, CallModel, Complete, GiveUp, TellMissing, TurnLimits, next_action
from tests.domain.facts import OPENED, QUESTION, asked_for, call, calling, replied, returned, says
from tests.domain.given import given

LENGTH = e.FinishReason.LENGTH
BEGUN = (*OPENED, calling(1), replied(1, says("Once upon "), finish=LENGTH))
NUDGED = e.TurnNudged(missing="the answer is no JSON", message="Put that right now.")
ENDED = (*OPENED, calling(1), replied(1, says("Here you are.")))


def parts(*texts: str) -> tuple[e.RunEvent, ...]:
    """One reply after the other, each ended by the output limit."""
    facts: list[e.RunEvent] = [*OPENED]
    for step, text in enumerate(texts, 1):
        facts += [calling(step), replied(step, says(text), finish=LENGTH)]
    return tuple(facts)


def lacks(run: Run) -> str | None:
    return "the answer is no JSON"


def planned(*past: e.RunEvent, lacking: bool = False, **limits: int) -> Action:
    bounds = TurnLimits(**limits)
    run = given(*past).run
    return next_action(run, bounds, lacks) if lacking else next_action(run, bounds)


class TestLength:
    """CHAIN-8: a `length` finish is not a failure."""

    def test_the_text_is_carried_on(self) -> None:
        assert planned(*BEGUN) == CallModel(step=2)

    @pytest.mark.parametrize(("count", "action"), [(3, CallModel(step=4)), (4, Complete())])
    def test_three_further_calls_carry_it_on_and_no_fourth(self, count: int, action: Action) -> None:
        assert planned(*parts(*"abcd"[:count])) == action

    def test_without_further_calls_it_is_the_answer_as_it_is(self) -> None:
        assert planned(*BEGUN, max_length_continuations=0) == Complete()

    def test_the_step_limit_ends_the_carrying_on_and_not_the_run(self) -> None:
        assert planned(*BEGUN, max_steps=1) == Complete()

    def test_the_parts_are_one_message(self) -> None:
        run = given(*BEGUN, calling(2), replied(2, says("a time."))).run
        assert run.transcript == (QUESTION, says("Once upon a time."))
        assert (run.answer, run.unfinished_text) == ("Once upon a time.", "")

    def test_a_part_may_end_in_tool_calls(self) -> None:
        looked = call("c1")
        run = given(*BEGUN, calling(2), replied(2, says("I look.", looked))).run
        assert run.transcript == (QUESTION, says("Once upon I look.", looked))

    def test_what_the_provider_kept_of_a_part_is_not_taken_for_the_whole(self) -> None:
        """CHAIN-15: kept blocks are given back in place of the text, and hold the last part of it only."""
        message = AssistantMessage(content="a time.", provider_blocks=ProviderBlocks(provider="primary"))
        run = given(*BEGUN, calling(2), replied(2, message)).run
        assert run.transcript == (QUESTION, says("Once upon a time."))

    def test_each_text_of_a_turn_may_be_carried_on_as_often(self) -> None:
        looked = call("c1")
        ended = (calling(2), replied(2, says("", looked)), returned(looked, "seen"))
        again = given(*BEGUN, *ended, calling(3), replied(3, says("Well, "), finish=LENGTH)).run
        assert (again.continuations, again.unfinished_text) == (0, "Well, ")

    def test_a_reply_that_asks_for_tools_is_not_carried_on(self) -> None:
        """Its tools are called; what the limit has cut off of the last call is told to the model."""
        looked = call("c1")
        past = (*OPENED, calling(1), replied(1, says("", looked), finish=LENGTH), returned(looked, "seen"))
        run = given(*past).run
        assert run.unfinished_text == ""
        assert planned(*past) == CallModel(step=2)


class TestDeliverable:
    """CHAIN-9: a turn that ends without is nudged, then fails."""

    def test_a_turn_that_lacks_something_is_told_what(self) -> None:
        assert planned(*ENDED, lacking=True) == TellMissing(missing="the answer is no JSON")

    def test_the_model_reads_the_nudge_and_answers_again(self) -> None:
        run = given(*ENDED, NUDGED).run
        assert run.transcript == (
            QUESTION,
            says("Here you are."),
            UserMessage(content="Put that right now."),
        )
        assert planned(*ENDED, NUDGED, lacking=True) == CallModel(step=2)

    def test_after_its_nudges_it_fails_with_what_is_missing(self) -> None:
        action = planned(*ENDED, NUDGED, calling(2), replied(2, says("No.")), lacking=True)
        assert isinstance(action, GiveUp)
        assert (action.error.type, action.error.error_class) == ("missing_deliverable", ErrorClass.INVALID)
        assert action.error.message.endswith("after 1 nudges: the answer is no JSON")

    @pytest.mark.parametrize("limits", [{"max_nudges": 0}, {"max_steps": 1}], ids=["none", "no step is left"])
    def test_a_nudge_that_may_not_be_given_is_not_given(self, limits: dict[str, int]) -> None:
        action = planned(*ENDED, lacking=True, **limits)
        assert isinstance(action, GiveUp)
        assert action.error.type == "missing_deliverable"

    def test_an_answer_is_not_asked_about_before_it_is_whole(self) -> None:
        assert planned(*BEGUN, lacking=True) == CallModel(step=2)

    def test_a_nudge_is_for_a_turn_that_has_ended(self) -> None:
        nudge = Nudge(missing="all", message="Go on.")
        given(*OPENED).refuses(nudge, OutOfTurn)
        given(*OPENED, *asked_for(call("c1"))).refuses(nudge, OutOfTurn)
        assert given(*ENDED).when(nudge) == [e.TurnNudged(missing="all", message="Go on.")]


def test_waiting_for_a_place_is_told_once() -> None:
    """CONC-2."""
    waiting = given(*OPENED).after(BeginModelCall(step=1, provider="primary", model="small"))
    told = [e.ModelCallQueued(step=1, attempt=1, provider="primary", model="small")]
    assert waiting.when(RecordQueueing(step=1)) == told
    assert waiting.after(RecordQueueing(step=1)).when(RecordQueueing(step=1)) == []
    given(*OPENED).refuses(RecordQueueing(step=1), OutOfTurn)


def test_a_reply_of_nothing_is_no_reply() -> None:
    given(*OPENED, calling(1)).refuses(RecordReply(step=1, message=says(), finish=LENGTH), OutOfTurn)
