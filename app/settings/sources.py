"""Where settings come from: one file, and the environment."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from app.settings.errors import Problem, SettingsError
from domain import strict_json

Tree = dict[str, Any]
PREFIX = "TRACON_"
SEPARATOR = "__"


class FromEnvironment(str):
    """A value of the environment. It is text, whatever the setting is."""

    __slots__ = ()


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """An environment variable that sets the key at `path`."""

    name: str
    path: tuple[str, ...]
    value: FromEnvironment


def read_file(file: Path) -> Tree:
    """The file as it is written. Raise SettingsError where it cannot be read as TOML or JSON."""
    parse = _PARSERS.get(file.suffix.lower())
    if parse is None:
        raise _unreadable(file, "a settings file is named .toml or .json")
    try:
        tree = parse(file.read_text("utf-8-sig"))
    except OSError as error:
        raise _unreadable(file, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(file, f"is not valid {file.suffix[1:].upper()}: {error}") from error
    if not isinstance(tree, dict):
        raise _unreadable(file, "must hold an object of sections")
    return tree


def read_environment(environ: Mapping[str, str]) -> Iterator[Variable]:
    """The variables that are settings: sections' keys, TRACON_DSN, TRACON_PROFILE. An empty one is unset."""
    for name, value in sorted(environ.items()):
        key = name.removeprefix(PREFIX)
        if key == name or not value:
            continue
        if SEPARATOR in key or key in ("DSN", "PROFILE"):
            path = tuple(key.lower().split(SEPARATOR))
            yield Variable(name=name, path=path, value=FromEnvironment(value))


def merge(below: Tree, above: Tree) -> Tree:
    """Both trees as one; where both say something, `above` holds."""
    merged = dict(below)
    for key, value in above.items():
        lower = merged.get(key)
        merged[key] = merge(lower, value) if isinstance(lower, dict) and isinstance(value, dict) else value
    return merged


def place(tree: Tree, variable: Variable) -> tuple[str, ...]:
    """Set the variable's value in the tree, and return where: names of the file are found in any spelling."""
    at: Tree = tree
    path: list[str] = []
    for segment in variable.path:
        path.append(_spelling(at, segment))
        if len(path) == len(variable.path):
            break
        if not isinstance(at.get(path[-1]), dict):
            at[path[-1]] = {}
        at = at[path[-1]]
    at[path[-1]] = variable.value
    return tuple(path)


def _spelling(tree: Tree, segment: str) -> str:
    """A variable cannot be named after `Big-Model`; BIG_MODEL means it."""
    return next((key for key in tree if _loose(key) == segment), segment)


def _loose(key: str) -> str:
    return key.lower().replace("-", "_").replace(".", "_")


_PARSERS: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": strict_json.parse}


def _unreadable(file: Path, reason: str) -> SettingsError:
    return SettingsError([Problem(source=str(file), key="", reason=reason)])
