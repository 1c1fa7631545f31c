import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import strict_json

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


@given(values)
def test_what_is_in_order_is_read_as_it_is(value: Any) -> None:
    assert strict_json.parse(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": {"b": 1, "b": 2}}', "'b' is given twice"),
        ("[1, NaN]", "NaN is not a number"),
        ("-Infinity", "-Infinity is not a number"),
        ("1e999", "1e999 is too large"),
        ('"\\udc00x"', "half a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ("", "Expecting value"),
        ("1" * 5000, "integer string conversion"),
    ],
)
def test_what_is_not_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        strict_json.parse(text)


@pytest.mark.timeout(10)
def test_a_name_that_is_given_twice_is_found_among_a_hundred_thousand() -> None:
    """Comparing each with each took minutes, in which the host did nothing else."""
    names = [f"n{number}" for number in range(100_000)]
    text = json.dumps(dict.fromkeys(names, 0))[:-1] + ', "n99999": 1}'
    with pytest.raises(ValueError, match="'n99999' is given twice"):
        strict_json.parse(text)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert strict_json.parse('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


def test_a_reader_may_see_numbers_as_they_were_written() -> None:
    assert strict_json.parse("[1.50, 2]", number=str) == ["1.50", "2"]
