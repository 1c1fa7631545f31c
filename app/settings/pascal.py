"""Settings that are written in PascalCase, brought to the spelling of the sections."""

import re
from typing import Any

from app.settings.hints import field_types, is_struct, struct_items, type_for
from app.settings.sources import Tree

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(key: str) -> str:
    return _WORD_START.sub("_", key).lower()


def in_snake_case(tree: Any, hint: Any) -> Any:
    """The tree with its keys respelt. Names that the operator chose stay as they are.

    Raise ValueError where two keys of one section become the same.
    """
    kind = type_for(tree, hint)
    if is_struct(kind) and isinstance(tree, dict):
        return _section(tree, field_types(kind))
    if (item := struct_items(kind, dict)) and isinstance(tree, dict):
        return {key: in_snake_case(entry, item) for key, entry in tree.items()}
    if (item := struct_items(kind, tuple)) and isinstance(tree, list):
        return [in_snake_case(entry, item) for entry in tree]
    return tree


def _section(tree: Tree, types: dict[str, Any]) -> Tree:
    respelt: Tree = {}
    for key, value in tree.items():
        name = snake_case(key)
        if name in respelt:
            raise ValueError(f"{key!r} is given twice, in two spellings")
        respelt[name] = in_snake_case(value, types.get(name, Any))
    return respelt
