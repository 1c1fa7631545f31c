"""What a model reads of a result."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.tools.outcome import UnusableResult, limited, storable, text_of


class Colour(Enum):
    RED = "red"


class Line(msgspec.Struct):
    item: str


@dataclass
class Address:
    street: str


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ([1, "a"], '[1,"a"]'),
        ({"a": Decimal("0.10"), "b": Colour.RED}, '{"a":"0.10","b":"red"}'),
        (Line("x"), '{"item":"x"}'),
        (Address("Main"), '{"street":"Main"}'),
        (datetime(2026, 1, 31, tzinfo=UTC), '"2026-01-31T00:00:00Z"'),
        ("\N{GRINNING FACE}", "\N{GRINNING FACE}"),
    ],
)
def test_a_result_is_read_as_text_or_as_json(result: Any, text: str) -> None:
    assert text_of(result) == text


def _in_itself() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("result", [object(), {"a": object()}, {object(): 1}, ["\ud800"], _in_itself()])
def test_what_cannot_be_written_as_json_is_said_to_be_so(result: Any) -> None:
    with pytest.raises(UnusableResult, match=r"it returned a \w+, which cannot be written as JSON"):
        text_of(result)


@given(st.text(st.characters()))
@example("a\0b\ud800c\ud83d\ude00")
def test_whatever_a_tool_says_can_be_stored_and_sent(text: str) -> None:
    """One NUL or half a surrogate pair in the log would stop whoever reads it next."""
    kept = storable(text)
    assert "\0" not in kept
    assert kept.encode().decode() == kept
    if "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text):
        assert kept == text


@given(st.text(), st.integers(1, 40))
def test_output_beyond_the_limit_is_cut_with_a_mark_that_the_model_can_read(text: str, limit: int) -> None:
    """TOOL-1: output limit."""
    text = storable(text)
    shown, truncated = limited(text, limit)
    size = len(text.encode())
    assert truncated == (size > limit)
    if not truncated:
        assert shown == text
        return
    kept, _, mark = shown.rpartition("\n")
    assert text.startswith(kept)
    assert limit - 3 <= len(kept.encode()) <= limit
    assert mark == f"[The output was cut here: {limit} of {size} bytes are shown.]"
