import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.ids import RunId
from domain.ledger import call_key, canonical_arguments

RUN = RunId(UUID("0190f3c2-0000-7000-8000-000000000001"))

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, max_size=4)


def distinguishable(value: Any) -> Any:
    """Equality as JSON has it: 1 is 1.0, but neither is true."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return [distinguishable(item) for item in value]
    if isinstance(value, dict):
        return {key: distinguishable(item) for key, item in value.items()}
    return Decimal(repr(value)) if isinstance(value, int | float) else value


@given(objects)
def test_spelling_does_not_matter(arguments: dict[str, Any]) -> None:
    backwards = dict(reversed(arguments.items()))
    spellings = [
        json.dumps(arguments),
        json.dumps(backwards, indent=3, ensure_ascii=False),
        f"  {json.dumps(arguments, separators=(' ,', ' :'))}\n",
    ]
    assert len({canonical_arguments(text) for text in spellings}) == 1


@given(objects)
def test_canonical_arguments_mean_what_was_sent(
    arguments: dict[str, Any],
) -> None:
    canonical = canonical_arguments(json.dumps(arguments))
    read = json.loads(canonical, parse_int=Decimal, parse_float=Decimal)
    assert distinguishable(read) == distinguishable(arguments)
    assert canonical_arguments(canonical) == canonical


@given(objects, objects)
@example({"a": True}, {"a": 1})
@example({"a": 0.1}, {"a": "0.1"})
@example({"a": None}, {})
def test_different_arguments_are_never_the_same_call(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = canonical_arguments(json.dumps(one)) == canonical_arguments(json.dumps(other))
    assert same == (distinguishable(one) == distinguishable(other))


@pytest.mark.parametrize(
    ("spellings", "canonical"),
    [
        (("1", "1.0", "1e0", "10e-1", "0.01E+2"), "1"),
        (("0", "-0", "0.0", "0e99"), "0"),
        (("-1500", "-1.5e3"), "-1500"),
        (("0.001", "1e-3", "0.0010"), "0.001"),
        (("1e30", "10e29"), "1e30"),
        (("25e-31",), "25e-31"),
    ],
)
def test_a_number_has_one_spelling(spellings: tuple[str, ...], canonical: str) -> None:
    assert {canonical_arguments(f'{{"n": {number}}}') for number in spellings} == {f'{{"n":{canonical}}}'}


def test_long_numbers_keep_all_their_digits() -> None:
    """As floats these two would be one number, and the second call would get the first one's result."""
    one, other = (canonical_arguments(f'{{"id": 9007199254740993.{digit}}}') for digit in "12")
    assert one != other


@pytest.mark.parametrize("text", ["", "  \n"])
def test_no_text_is_an_empty_object(text: str) -> None:
    assert canonical_arguments(text) == "{}"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        "[1, 2]",
        '"text"',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": "\\ud800"}',
        '{"a": ' * 70 + "1" + "}" * 70,
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a": 1e' + "9" * 5000 + "}",
    ],
)
def test_what_is_no_proper_object_is_the_same_as_itself_only(text: str) -> None:
    assert canonical_arguments(text) == text


@given(st.text())
def test_every_text_has_a_canonical_form_and_a_key(text: str) -> None:
    assert call_key(RUN, "tool", canonical_arguments(text), 0).startswith("tk_")


def test_a_call_repeated_after_a_crash_or_a_fallback_has_the_same_key() -> None:
    """TOOL-1: nothing of the host, the time or the model's spelling is in the key."""
    first = call_key(RUN, "charge", canonical_arguments('{"cents": 500, "to": "a"}'), 0)
    again = call_key(RunId(UUID(str(RUN))), "charge", canonical_arguments('{"to":"a","cents":5e2}'), 0)
    assert first == again == "tk_" + first[3:]
    assert len(first) == 43


def test_the_key_is_the_one_that_the_outside_world_was_told_before() -> None:
    """A changed rule would make a payment twice: this key may already be known to somebody."""
    assert call_key(RUN, "charge", '{"cents":500}', 0) == "tk_42fa84673ca978709c3891541607b923e14a79d9"


@given(
    st.tuples(st.uuids(), st.text(), st.text(), st.integers(min_value=0)),
    st.tuples(st.uuids(), st.text(), st.text(), st.integers(min_value=0)),
)
@example((RUN, "a", "b", 0), (RUN, "ab", "", 0))
@example((RUN, "a", "\ud800", 0), (RUN, "a", "\\ud800", 0))
def test_two_calls_have_two_keys(one: tuple[UUID, str, str, int], other: tuple[UUID, str, str, int]) -> None:
    def key(run: UUID, tool: str, arguments: str, occurrence: int) -> str:
        return call_key(RunId(run), tool, arguments, occurrence)

    assert (key(*one) == key(*other)) == (one == other)
