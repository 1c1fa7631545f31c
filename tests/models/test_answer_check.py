"""Answers held against the schema that they must meet (CHAIN-9)."""

from typing import Any

import pytest

from app.models.answer_check import AnswerSchema, flaw_in_schema

ORDER = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {"id": {"type": "integer"}, "next": {"$ref": "#/$defs/order"}},
    "$defs": {"order": {"type": "object", "required": ["id"]}},
}


@pytest.mark.parametrize("answer", ['{"id": 7}', ' {"id": 7, "next": {"id": 8}} \n'])
def test_an_answer_that_meets_its_schema_has_no_flaw(answer: str) -> None:
    assert AnswerSchema(ORDER).flaw_in(answer) is None


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("It is 7.", "the answer must be JSON and nothing else, but "),
        ('```json\n{"id": 7}\n```', "the answer must be JSON and nothing else, but "),
        ('{"id": 7', "the answer must be JSON and nothing else, but "),
        ("\ud800", "the answer must be JSON and nothing else, but "),
        ('{"id": "7"}', "the answer does not meet its JSON schema at $.id: '7' is not of type 'integer'"),
        (
            '{"id": 7, "next": {}}',
            "the answer does not meet its JSON schema at $.next: 'id' is a required",
        ),
    ],
)
def test_a_flaw_is_told_in_words_that_a_model_understands(answer: str, told: str) -> None:
    flaw = AnswerSchema(ORDER).flaw_in(answer)
    assert flaw is not None
    assert flaw.startswith(told)


def test_a_flaw_does_not_repeat_all_of_a_long_answer() -> None:
    flaw = AnswerSchema({"type": "object"}).flaw_in(f'"{"x" * 100_000}"')
    assert flaw is not None
    assert len(flaw) < 1000


@pytest.mark.parametrize(
    ("schema", "flaw"),
    [
        (ORDER, None),
        ({"$defs": {"a": {"$anchor": "here"}}, "$ref": "#here"}, None),
        ({"properties": {"$ref": {"type": "string"}}}, None),
        ({"type": "thing"}, "is no JSON schema: 'thing' is not valid under any of the given schemas"),
        ({"$ref": "#/$defs/nowhere"}, "refers to '#/$defs/nowhere', which is not in the schema itself"),
        (
            {"items": {"$ref": "https://example.com/order"}},
            "refers to 'https://example.com/order', which is not in the schema itself",
        ),
    ],
)
def test_a_schema_that_is_of_no_use_is_told(schema: dict[str, Any], flaw: str | None) -> None:
    """Nothing is fetched for it, neither when an agent is defined nor when it has answered."""
    assert flaw_in_schema(schema) == flaw


def doubling(depth: int) -> dict[str, Any]:
    """A small schema of which each level asks for the next one twice."""
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(depth)}
    return {"$defs": {**levels, f"l{depth}": {}}, "$ref": "#/$defs/l0"}


@pytest.mark.parametrize("schema", [doubling(40), {"$ref": "#"}, {"allOf": [{"$ref": "#"}] * 2}])
def test_a_schema_without_end_does_not_hold_up_the_host(schema: dict[str, Any]) -> None:
    assert flaw_in_schema(schema) is None
    flaw = AnswerSchema(schema).flaw_in("{}")
    assert flaw == "it would take too long to hold the answer against its JSON schema"


def test_what_is_only_large_is_checked() -> None:
    schema = {"type": "array", "items": {"type": "object", "required": ["a"]}}
    many = "[" + ",".join(['{"a": 1}'] * 10_000) + "]"
    assert AnswerSchema(schema).flaw_in(many) is None
    assert AnswerSchema(schema).flaw_in("[{}]") is not None
