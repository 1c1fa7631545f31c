"""A strict wire is asked for as much of a schema as it takes, and never for something else."""

from typing import Any

import pytest

from app.models.answer_schema import narrowed


def test_limits_are_left_out_and_objects_are_closed_at_every_depth() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1, "description": "Its number."},
            "mail": {"type": "string", "format": "email", "maxLength": 80},
            "slug": {"type": "string", "format": "slug", "pattern": "^[a-z]+$"},
            "state": {"enum": ["open", "shipped"]},
            "items": {
                "type": "array",
                "minItems": 1,
                "maxItems": 9,
                "items": {"type": "object", "properties": {"sku": {"$ref": "#/$defs/sku"}}},
            },
            "note": {"oneOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
        },
        "required": ["id"],
        "$defs": {"sku": {"type": "string", "minLength": 3}},
    }
    assert narrowed(schema) == {
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer", "description": "Its number."},
            "mail": {"type": "string", "format": "email"},
            "slug": {"type": "string"},
            "state": {"enum": ["open", "shipped"]},
            "items": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"sku": {"$ref": "#/$defs/sku"}},
                    "additionalProperties": False,
                },
            },
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["id"],
        "additionalProperties": False,
        "$defs": {"sku": {"type": "string"}},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "array", "items": {"type": "object"}},
        {"not": {"type": "string"}},
    ],
)
def test_what_would_come_out_as_something_else_is_not_asked_for(schema: dict[str, Any]) -> None:
    assert narrowed(schema) is None
