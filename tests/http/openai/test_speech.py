"""What a run's events come to for a client from whom nothing can be taken back."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.http.openai import chat_request, response_request
from app.http.openai.rendering import render
from app.http.openai.response_teller import ResponseTeller
from app.http.openai.speech import Began, Ended, Said, Speech, Words, WordsLost
from app.store.feed import Frame, LiveFrame
from domain import events as e
from domain.agent import AgentDefinition, Binding, Link, Loop
from domain.events.side import AnswerSentBack
from domain.ids import DEFAULT_TENANT, RunId, StreamId, Version
from domain.messages import AssistantMessage, UserMessage

RUN = RunId(UUID(int=7))
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
AGENT = AgentDefinition(name="clerk", provider="primary", model="small")
FORMED = msgspec.structs.replace(AGENT, response_schema={"type": "object"})
STOP, TOOLS, LENGTH = e.FinishReason.STOP, e.FinishReason.TOOL_CALLS, e.FinishReason.LENGTH


def opened(agent: AgentDefinition = AGENT, *, streaming: bool = True) -> list[e.Event]:
    question = (UserMessage(content="Well?"),)
    created = e.RunCreated(
        tenant=DEFAULT_TENANT, kind=e.RunKind.AGENT, agent="clerk", input=question, streaming=streaming
    )
    return [created, e.RunStarted(host="h", definition=agent)]


def told(text: str) -> e.Event:
    return e.TextDelta(step=1, text=text)


def replied(text: str, finish: e.FinishReason = STOP) -> e.Event:
    message = AssistantMessage(content=text)
    return e.ModelReplied(step=1, provider="primary", model="small", message=message, finish=finish)


def completed(answer: str, finish: e.FinishReason = STOP) -> e.Event:
    return e.RunCompleted(answer=answer, finish=finish)


JUDGED = msgspec.structs.replace(
    AGENT, loop=Loop(criterion="It greets.", judge=Binding(provider="judge", model="j"))
)
NUDGED = e.TurnNudged(missing="a call", message="Call it.")
RESTARTED = e.ModelFallbackUsed(
    primary=Link(provider="a", model="b"),
    fallback=Link(provider="c", model="d"),
    reason="down",
    step=2,
    restarted=True,
)


def recorded(events: Iterable[e.Event]) -> list[Frame]:
    return [
        e.Recorded(
            stream_id=StreamId(RUN),
            sequence=Version(number),
            position=number,
            at=NOON + timedelta(seconds=number),
            tenant=DEFAULT_TENANT,
            event=event,
        )
        for number, event in enumerate(events, 1)
    ]


def shown(text: str) -> Frame:
    return LiveFrame(after=3, event=told(text))


def heard(frames: Iterable[Frame]) -> list[Said]:
    speech = Speech()
    return [said for frame in frames for said in speech.hear(frame)]


def said(*events: e.Event, agent: AgentDefinition = AGENT, streaming: bool = True) -> list[Said]:
    return heard(recorded([*opened(agent, streaming=streaming), *events]))


def test_a_text_is_told_as_it_comes() -> None:
    assert said(told("a"), told("b"), replied("ab"), completed("ab")) == [
        Began(0),
        Words("a"),
        Words("b"),
        Ended("ab", is_answer=True),
    ]


def test_what_was_not_told_before_is_told_with_the_reply() -> None:
    assert said(told("a"), replied("abc"))[2:] == [Words("bc"), Ended("abc", is_answer=True)]
    assert said(replied("abc")) == [Began(0), Words("abc"), Ended("abc", is_answer=True)]


def test_a_reply_without_text_says_nothing() -> None:
    assert said(replied("", TOOLS)) == []


def test_what_comes_before_calls_of_tools_is_no_answer() -> None:
    assert [one for one in said(replied("a", TOOLS), replied("b")) if isinstance(one, Ended)] == [
        Ended("a", is_answer=False),
        Ended("b", is_answer=True),
    ]


def test_a_text_that_is_carried_on_is_one() -> None:
    """CHAIN-8"""
    assert said(told("a"), replied("a", LENGTH), told("b"), replied("bc"), completed("abc")) == [
        Began(0),
        Words("a"),
        Words("b"),
        Words("c"),
        Ended("abc", is_answer=True),
    ]


def test_a_text_that_its_limit_ended_is_whole_with_the_run() -> None:
    """CHAIN-8"""
    assert said(replied("a", LENGTH), completed("a", LENGTH))[-1] == Ended("a", is_answer=True)


def test_a_text_that_is_not_carried_on_after_all_ends_before_the_next() -> None:
    """CHAIN-9"""
    texts = [one for one in said(replied("a", LENGTH), NUDGED, replied("b")) if not isinstance(one, Words)]
    assert texts == [Began(0), Ended("a", is_answer=True), Began(1), Ended("b", is_answer=True)]


@pytest.mark.parametrize(("agent", "streaming"), [(FORMED, True), (AGENT, False)])
def test_what_might_have_to_be_taken_back_waits_for_the_end(agent: AgentDefinition, streaming: bool) -> None:
    """CHAIN-9"""
    assert said(told("a"), replied("a"), agent=agent, streaming=streaming) == []


def test_an_answer_that_its_judge_sent_back_is_never_told() -> None:
    """CHAIN-13"""
    sent_back = AnswerSentBack(round=1, message="It does not greet.")
    rounds = (told("a"), replied("a"), sent_back, told("b"), replied("b"), completed("b"))
    assert said(*rounds, agent=JUDGED) == [Began(1), Words("b"), Ended("b", is_answer=True)]


def test_of_texts_in_a_form_only_the_last_is_told() -> None:
    """CHAIN-9"""
    assert said(replied("a", TOOLS), replied("b"), NUDGED, replied("{}"), completed("{}"), agent=FORMED) == [
        Began(2),
        Words("{}"),
        Ended("{}", is_answer=True),
    ]


def test_a_turn_that_began_again_said_nothing_before() -> None:
    """CHAIN-6"""
    events = (replied("a", TOOLS), RESTARTED, replied("b"), completed("b"))
    assert said(*events, streaming=False) == [Began(0), Words("b"), Ended("b", is_answer=True)]


def test_lost_words_are_not_passed_over() -> None:
    """EVENT-7: what nobody recorded cannot be told again."""
    with pytest.raises(WordsLost):
        heard([*recorded(opened()), shown("a"), shown("c"), *recorded([replied("abc")])])


PIECES = st.lists(st.text(min_size=1, max_size=3), max_size=4)
REPLY = st.tuples(PIECES, st.sampled_from([STOP, TOOLS, LENGTH]), st.booleans())


def story(replies: list[tuple[list[str], e.FinishReason, bool]]) -> list[list[e.Event]]:
    """Model calls, each as its deltas and its reply; some are not streamed to their end."""
    calls: list[list[e.Event]] = []
    for pieces, finish, whole in replies:
        text = "".join(pieces)
        calls.append([*map(told, pieces if whole else pieces[:1]), replied(text, finish)])
    return calls


@given(replies=st.lists(REPLY, max_size=4), place=st.integers(-1, 60))
def test_a_response_is_told_alike_from_any_place_on(
    replies: list[tuple[list[str], e.FinishReason, bool]], place: int
) -> None:
    """HTTP-3: without gap or repeat."""
    events = [event for call in story(replies) for event in call]
    frames = recorded([*opened(), *events, completed("x")])
    whole, rest = ResponseTeller(RUN), ResponseTeller(RUN, place)
    all_frames = [whole.tell(frame) for frame in frames]
    split = b"".join(all_frames).split(b"\n\n")[:-1]
    assert b"".join(rest.tell(frame) for frame in frames).split(b"\n\n")[:-1] == split[place + 1 :]


@given(replies=st.lists(REPLY, max_size=4))
def test_shown_words_do_not_change_the_numbers(
    replies: list[tuple[list[str], e.FinishReason, bool]],
) -> None:
    """EVENT-7: whoever was shown text and whoever comes later count alike."""
    calls = story(replies)
    record = [*opened(), *(call[-1] for call in calls), completed("x")]
    later = ResponseTeller(RUN)
    expected = [line for frame in recorded(record) for line in later.tell(frame).split(b"\n\n")]
    live = ResponseTeller(RUN)
    seen: list[bytes] = []
    frames = recorded(record)
    for frame in frames[:2]:
        seen += live.tell(frame).split(b"\n\n")
    for call, frame in zip(calls, frames[2:-1], strict=True):
        for event in call[:-1]:
            seen += live.tell(LiveFrame(after=2, event=event)).split(b"\n\n")
        seen += live.tell(frame).split(b"\n\n")
    seen += live.tell(frames[-1]).split(b"\n\n")
    deltas = b"event: response.output_text.delta"
    assert [line for line in seen if line and deltas not in line] == [
        line for line in expected if line and deltas not in line
    ]


@given(replies=st.lists(REPLY, max_size=4), streaming=st.booleans())
def test_an_answer_is_the_same_bytes_at_every_telling(
    replies: list[tuple[list[str], e.FinishReason, bool]], streaming: bool
) -> None:
    """IDEM-3: a function of the run's events and of nothing else."""
    events = [event for call in story(replies) for event in call]
    frames = recorded([*opened(streaming=streaming), *events, completed("x")])
    for api in (chat_request.API, response_request.API):
        assert render(RUN, frames, api=api) == render(RUN, list(frames), api=api)
    completion = msgspec.json.decode(render(RUN, frames, api=chat_request.API).body)
    assert completion["choices"][0]["message"]["content"] == "x"
    assert completion["created"] == int(frames[0].at.timestamp() if isinstance(frames[0], e.Recorded) else 0)
