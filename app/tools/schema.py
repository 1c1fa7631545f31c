"""The JSON schema of a tool's arguments, in the dialect that every provider takes."""

from typing import Any

import msgspec

_JSON_TYPES = {str: "string", int: "integer"}


def json_schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """An object schema. Types that are used by name stand in its `$defs`."""
    (reference,), named = msgspec.json.schema_components((arguments,), ref_template="#/$defs/{name}")
    schema: dict[str, Any] = named.pop(reference["$ref"].removeprefix("#/$defs/"))
    del schema["title"]
    if named:
        schema["$defs"] = named
    _type_the_enums(schema)
    return schema


def _type_the_enums(schema: Any) -> None:
    """Some providers refuse an enum that does not say which type its values have."""
    if isinstance(schema, list):
        for item in schema:
            _type_the_enums(item)
    if not isinstance(schema, dict):
        return
    kinds = {_JSON_TYPES.get(type(value)) for value in schema.get("enum", ())}
    if len(kinds) == 1 and (kind := kinds.pop()):
        schema.setdefault("type", kind)
    for part in schema.values():
        _type_the_enums(part)
