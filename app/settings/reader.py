"""From a tree of plain values to a struct, led by its types. Every problem is kept, not just the first."""

import difflib
import math
import typing
from collections.abc import Collection
from contextlib import suppress
from decimal import Decimal
from typing import Any, Literal

import msgspec

from app.settings.durations import parse_duration
from app.settings.hints import is_duration, is_struct, struct_items, type_for, type_within
from app.settings.pascal import snake_case
from app.settings.sections import BrokenRelation
from app.settings.sources import FromEnvironment, Tree
from domain import strict_json

Path = tuple[str, ...]


class Reader:
    """Reads a tree. What it cannot use is in `problems`, as path and reason."""

    def __init__(self) -> None:
        self.problems: list[tuple[Path, str]] = []

    def read(self, value: Any, hint: Any, path: Path = ()) -> Any:
        """The value as `hint` asks. After a problem the result means nothing."""
        try:
            return self._read(value, hint, path)
        except BrokenRelation as error:
            self.problems.append(((*path, *error.key.split(".")), error.reason))
        except (ValueError, msgspec.ValidationError) as error:
            self.problems.append((path, _sentence(error)))
        return None

    def _read(self, value: Any, hint: Any, path: Path) -> Any:
        kind = type_for(value, hint)
        if value is None:
            return _plain(value, hint)
        if is_struct(kind):
            return self._struct(_container(value, dict), kind, path)
        if item := struct_items(kind, dict):
            entries = _container(value, dict).items()
            return {key: self._entry(key, entry, item, (*path, key)) for key, entry in entries}
        if item := struct_items(kind, tuple):
            listed = enumerate(_container(value, list))
            return tuple(self.read(entry, item, (*path, str(place))) for place, entry in listed)
        return _duration(value, hint) if is_duration(hint) else _plain(value, hint)

    def _entry(self, name: str, entry: Any, item: Any, path: Path) -> Any:
        """An entry of a map. The key is its name, where it has one."""
        entry = _meant(entry, Any) if isinstance(entry, FromEnvironment) else entry
        if isinstance(entry, dict) and "name" in item.__struct_fields__:
            if "name" in entry:
                self.problems.append(((*path, "name"), f"is unknown; the name is {name!r} already"))
            entry = {**entry, "name": name}
        return self.read(entry, item, path)

    def _struct(self, tree: Tree, struct: Any, path: Path) -> Any:
        faults = len(self.problems)
        fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
        for key in tree:
            if key not in fields:
                self.problems.append(((*path, key), _unknown(key, fields)))
        for key, field in fields.items():
            if field.required and key not in tree:
                self.problems.append(((*path, key), "is required"))
        found = {
            field.name: self.read(tree[key], field.type, (*path, key))
            for key, field in fields.items()
            if key in tree
        }
        return struct(**found) if len(self.problems) == faults else None


def _container(value: Any, kind: type) -> Any:
    """The value as a dict or a list. The environment holds one as JSON."""
    if isinstance(value, FromEnvironment):
        value = _json(value)
    if not isinstance(value, kind):
        raise ValueError(f"expected {'an object' if kind is dict else 'a list'}, got {_type_name(value)}")
    return value


def _json(text: str) -> Any:
    try:
        return strict_json.parse(text)
    except ValueError as error:
        raise ValueError(f"expected JSON: {error}") from error


def _plain(value: Any, hint: Any) -> Any:
    kind = type_within(hint)
    if typing.get_origin(kind) is Literal and value not in (None, *typing.get_args(kind)):
        raise ValueError(f"expected one of {', '.join(map(str, typing.get_args(kind)))}")
    converted = msgspec.convert(_meant(value, kind), hint, strict=not isinstance(value, FromEnvironment))
    if not _is_finite(converted):
        raise ValueError("nan and infinity are nothing to count with")
    return converted


def _duration(value: Any, hint: Any) -> Any:
    try:
        return msgspec.convert(parse_duration(value), hint)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`float`", "seconds")) from error


def _meant(value: Any, kind: Any) -> Any:
    """What text from the environment stands for: JSON for a container, and where anything goes."""
    if isinstance(value, dict):
        return {key: _meant(entry, Any) for key, entry in value.items()}
    if not isinstance(value, FromEnvironment):
        return value
    if (typing.get_origin(kind) or kind) in (dict, list, tuple):
        return _json(value)
    if kind is Any:
        with suppress(ValueError):
            return _json(value)
    return str(value)


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float | Decimal) or math.isfinite(value)


def _unknown(key: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(snake_case(key), known, n=1)
    if close:
        return f"is unknown; did you mean {close[0]!r}?"
    return f"is unknown; known here: {', '.join(known) or 'nothing'}"


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].lower() + text[1:] if text.startswith("Expected") else text


def _type_name(value: Any) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", str: "text", FromEnvironment: "text"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
