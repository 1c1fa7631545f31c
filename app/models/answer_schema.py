"""A schema for answers, cut down to what a strict wire takes. The run checks the answer against all of it."""

from collections.abc import Mapping
from typing import Any

import msgspec

_KEPT = frozenset({"type", "description", "title", "enum", "const", "default", "required", "$ref"})
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
_OPTIONS = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
_DEFINITIONS = frozenset({"$defs", "definitions"})
_SAYS_SOMETHING = frozenset({"type", "enum", "const", "anyOf", "allOf", "$ref"})


class _CannotSay(Exception):
    """The wire has no words for this schema."""


def narrowed(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema without what it may not hold, every object closed. None where that would say too little."""
    try:
        return _narrow(schema)
    except _CannotSay:
        return None


def in_words(schema: Mapping[str, Any]) -> str:
    """The instruction that says the same."""
    text = msgspec.json.encode(schema).decode()
    return f"Answer with nothing but JSON that is valid under this JSON schema: {text}"


def _narrow(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise _CannotSay
    narrow = {key: schema[key] for key in schema if key in _KEPT or _is_taken(key, schema[key])}
    for key in schema.keys() & _OPTIONS.keys():
        narrow[_OPTIONS[key]] = [_narrow(option) for option in schema[key]]
    for key in schema.keys() & _DEFINITIONS:
        narrow[key] = {name: _narrow(option) for name, option in schema[key].items()}
    if "items" in schema:
        narrow["items"] = _narrow(schema["items"])
    if _is_object(schema):
        narrow |= _closed(schema)
    if not narrow.keys() & _SAYS_SOMETHING:
        raise _CannotSay
    return narrow


def _is_taken(key: str, value: Any) -> bool:
    """Whether a limit is one of the few that may stay."""
    return (key == "format" and value in _FORMATS) or (key == "minItems" and value in (0, 1))


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object of named properties. One whose keys are free cannot be asked for."""
    properties = schema.get("properties")
    if not properties or schema.get("additionalProperties") or schema.get("patternProperties"):
        raise _CannotSay
    named = {name: _narrow(option) for name, option in properties.items()}
    return {"type": "object", "properties": named, "additionalProperties": False}
