"""What a model sends is checked before anything runs, and it is told what to send instead."""

import json
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tools.arguments import InvalidArguments, read_arguments


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    number: int = 0
    name: str = ""
    tags: list[str] = []
    sizes: dict[str, float] = {}
    mode: Literal["fast", "slow"] = "fast"
    when: date | None = None
    price: Decimal | None = None


def test_no_text_is_no_arguments() -> None:
    assert read_arguments("", Arguments) == read_arguments(" \n", Arguments) == Arguments()


def test_json_becomes_what_the_hints_ask_for() -> None:
    text = '{"number": 5, "when": "2026-01-31", "price": "0.10", "tags": ["a"]}'
    assert read_arguments(text, Arguments) == Arguments(
        number=5, when=date(2026, 1, 31), price=Decimal("0.10"), tags=["a"]
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "The arguments are not valid JSON: Expecting property name"),
        ('{"number": 1} extra', "The arguments are not valid JSON: Extra data"),
        ('{"number": NaN}', "The arguments are not valid JSON: NaN is not a number."),
        ('{"number": 1e999}', "The arguments are not valid JSON: the number 1e999 is too large."),
        ('{"number": 1, "number": 2}', "The arguments are not valid JSON: 'number' is given twice."),
        ('{"name": "\\ud800"}', "The arguments are not valid JSON: it holds half a surrogate pair."),
        ('{"a":' * 100_000, "The arguments are not valid JSON: it is nested too deeply."),
        ("[]", "The arguments must be a JSON object, not an array."),
        ("null", "The arguments must be a JSON object, not null."),
        ('"{}"', "The arguments must be a JSON object, not a string."),
        ("5", "The arguments must be a JSON object, not a bare value."),
        (
            '{"number": "5"}',
            "The arguments do not fit: expected 'int', got 'str' at '.number'."
            " Known arguments: number, name, tags, sizes, mode, when, price.",
        ),
        (
            '{"numbr": 5}',
            "The arguments do not fit: object contains unknown field 'numbr'. Known arguments: ",
        ),
        ('{"mode": "faster"}', "The arguments do not fit: invalid enum value 'faster' at '.mode'."),
        ('{"tags": ["a", 1]}', "The arguments do not fit: expected 'str', got 'int' at '.tags[1]'."),
    ],
)
def test_what_does_not_fit_is_answered_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        read_arguments(text, Arguments)
    assert str(refused.value).startswith(sentence)


def test_a_missing_argument_is_named() -> None:
    class Needs(msgspec.Struct, kw_only=True):
        order_id: str

    with pytest.raises(InvalidArguments, match="missing required field 'order_id'"):
        read_arguments("", Needs)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_whatever_a_model_writes_it_is_arguments_or_a_sentence(text: str) -> None:
    try:
        read_arguments(text, Arguments)
    except InvalidArguments as error:
        sentence = str(error)
    else:
        sentence = "The arguments fit."
    assert sentence.startswith("The arguments ")


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "number": st.integers(),
            "name": st.text(),
            "tags": st.lists(st.text()),
            "sizes": st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
            "mode": st.sampled_from(["fast", "slow"]),
        },
    )
)
def test_what_fits_arrives_as_it_was_sent(sent: dict[str, Any]) -> None:
    read = read_arguments(json.dumps(sent), Arguments)
    assert {name: getattr(read, name) for name in sent} == sent
