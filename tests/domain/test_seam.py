"""Joining an answer to its continuation (CHAIN-14)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.seam import Seam

TEXT = st.text("ab \n", max_size=60)
STORY = "Once upon a time there was a harbour master who wrote everything down."


def told(before: str, *chunks: str) -> str:
    """What is new in a continuation that comes in these chunks."""
    seam = Seam(before)
    return "".join([*map(seam.feed, chunks), seam.rest()])


@pytest.mark.parametrize(
    ("before", "continuation", "new"),
    [
        ("", "Hello", "Hello"),
        ("Hello ", "there.", "there."),
        ("Hello ", "Hello there.", "there."),
        ("Hello", "Hello", ""),
        (STORY, STORY + " He never tore out a page.", " He never tore out a page."),
        (STORY, "who wrote everything down. The end.", " The end."),
        ("It was late. It was", " late, and it rained.", " late, and it rained."),
        ("They sang: la la", " la la", " la la"),
        ("Once upon a ", " time", "time"),
        ("One.\n", "\nTwo.", "Two."),
        ("One.\n\n", "Two.", "Two."),
    ],
    ids=[
        "nothing was said before",
        "it goes on",
        "it begins again",
        "it only says it again",
        "it begins a long text again",
        "it begins again from some words before the end",
        "a short echo may be meant",
        "a refrain may be meant",
        "the white space between is there once",
        "a line's end is there once",
        "what was not said again is not missed",
    ],
)
def test_what_was_said_is_not_said_again(before: str, continuation: str, new: str) -> None:
    """CHAIN-14: a repeated prefix is dropped."""
    assert told(before, continuation) == new
    assert told(before, *continuation) == new


@given(before=TEXT, rest=TEXT)
def test_a_text_that_is_begun_again_is_heard_once(before: str, rest: str) -> None:
    """CHAIN-14: no text twice, whatever the texts."""
    assert told(before, before + rest) == rest


@given(before=TEXT, start=st.integers(0, 60), rest=TEXT)
def test_a_long_end_that_is_repeated_is_heard_once(before: str, start: int, rest: str) -> None:
    """CHAIN-14: no text twice. What follows begins with what was never said: there is one way only."""
    before += STORY
    again = before[min(start, len(before) - 20) :]
    assert told(before, again + "#" + rest) == "#" + rest


@given(before=TEXT, continuation=TEXT)
def test_nothing_is_lost_but_what_was_there_already(before: str, continuation: str) -> None:
    """CHAIN-14: what is dropped are the last words of the text before; all else is heard, in order."""
    new = told(before, continuation)
    assert continuation.endswith(new)
    assert before.endswith(continuation.removesuffix(new) if new else continuation)


@given(before=TEXT, chunks=st.lists(st.text("ab \n", max_size=9), max_size=12))
def test_how_a_continuation_is_cut_into_chunks_makes_no_difference(before: str, chunks: list[str]) -> None:
    assert told(before, *chunks) == told(before, "".join(chunks))


def test_text_that_cannot_be_a_repetition_is_not_held_back() -> None:
    seam = Seam("Hello ")
    assert seam.feed("there") == "there"
    assert seam.feed(" Hello") == " Hello"


def test_a_text_of_a_hundred_thousand_characters_is_joined_in_no_time() -> None:
    """Found in the whole text at every chunk, and compared at its end: both must stay cheap."""
    before = "".join(f"line {number}\n" for number in range(10_000))
    chunks = [before[place : place + 7] for place in range(0, len(before), 7)]
    assert told(before, *chunks, "new") == "new"


def told_at_leisure(before: str, continuation: str) -> str:
    """The same without any haste: the longest end of the text before that tells, dropped."""
    for size in range(min(len(before), len(continuation)), 0, -1):
        tells = size >= 20 or size == len(before) or before[-size:].isspace()
        if tells and before.endswith(continuation[:size]):
            return continuation[size:]
    return continuation


@given(
    pattern=st.text("ab \n", min_size=1, max_size=4),
    more=TEXT,
    start=st.integers(0, 80),
    kept=st.integers(0, 80),
    rest=TEXT,
)
def test_long_and_monotonous_texts_are_joined_like_all_others(
    pattern: str, more: str, start: int, kept: int, rest: str
) -> None:
    """CHAIN-14: looking for the seam takes no time that grows with the square of the text."""
    before = (pattern * 40 + more)[:100]
    continuation = before[start : start + kept] + rest
    if before and continuation not in before:
        assert told(before, continuation) == told_at_leisure(before, continuation)
