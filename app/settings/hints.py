"""What the types of a settings struct say about its fields."""

import types
import typing
from typing import Annotated, Any

import msgspec


def type_within(hint: Any) -> Any:
    """The type without its annotations, and without the None it may be."""
    if typing.get_origin(hint) is Annotated:
        return type_within(hint.__origin__)
    if _is_union(hint):
        given = [option for option in typing.get_args(hint) if option is not types.NoneType]
        return type_within(given[0]) if len(given) == 1 else hint
    return hint


def type_for(value: Any, hint: Any) -> Any:
    """The type within. Where it may be a struct or a list of them, the one that the value is written as."""
    kind = type_within(hint)
    options = typing.get_args(kind) if _is_union(kind) else ()
    for option in map(type_within, options):
        if is_struct(option) and isinstance(value, dict):
            return option
        if struct_items(option, tuple) and isinstance(value, list):
            return option
    return kind


def is_duration(hint: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        marks = (mark for mark in hint.__metadata__ if isinstance(mark, msgspec.Meta))
        return any(mark.extra is not None and "duration" in mark.extra for mark in marks)
    return any(is_duration(option) for option in typing.get_args(hint))


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def struct_items(kind: Any, container: type) -> Any:
    """The struct that a `dict[str, ...]` or `tuple[..., ...]` is full of, or None."""
    if typing.get_origin(kind) is not container:
        return None
    item = type_within(typing.get_args(kind)[1 if container is dict else 0])
    return item if is_struct(item) else None


def field_types(struct: Any) -> dict[str, Any]:
    """The struct's keys, as they are written in a file, and their types."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(struct)}


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)
