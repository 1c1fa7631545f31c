"""What is defined over HTTP: its version is how often it was defined or removed. Each fact is a version."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, assert_never

import msgspec

from domain.errors import Conflict, NotFound
from domain.event import Event
from domain.ids import StreamId, Version


class Named(Protocol):
    """A definition says what it is of."""

    @property
    def name(self) -> str: ...


D = TypeVar("D", bound=Named)
E = TypeVar("E", bound=Event)


class VersionMoved(Conflict):
    """It is at another version than was asked for. Read it again, decide again."""

    code = "version_mismatch"

    def __init__(self, what: str, name: str, version: Version) -> None:
        super().__init__(f"{what} {name!r} is at version {version} now")
        self.version = version


class Versioned(msgspec.Struct, Generic[D], frozen=True, kw_only=True):
    """Where it is; without a definition it was removed, or never there."""

    version: Version = Version(0)
    definition: D | None = None


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller has seen. `version`: just that one; `exists`: some definition, or none."""

    version: int | None = None
    exists: bool | None = None

    def is_met_by(self, now: Versioned[Any]) -> bool:
        if self.version is not None and self.version != now.version:
            return False
        return self.exists is None or self.exists is (now.definition is not None)


class Define(msgspec.Struct, Generic[D], frozen=True, kw_only=True):
    definition: D
    by: str | None = None


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[D, E]):
    """What can be defined, and how its facts are made and read. `by`: the API key that was used."""

    what: str
    stream: Callable[[str, str], StreamId]
    """Of a tenant and a name."""
    defined: Callable[[D, str | None], E]
    removed: Callable[[str, str | None], E]
    definition_in: Callable[[E], D | None]
    """None in the fact that removes it."""
    not_found: Callable[[str], NotFound]


def decide(kind: Kind[D, E], now: Versioned[D], command: Define[D] | Remove, expected: Expected) -> list[E]:
    """Return the facts that follow, or raise VersionMoved or what the kind raises for what is not there.

    An empty list: it is just that already.
    """
    match command:
        case Define(definition=definition):
            _require(kind.what, expected, now, definition.name)
            return [] if definition == now.definition else [kind.defined(definition, command.by)]
        case Remove(name=name):
            if now.definition is None:
                raise kind.not_found(name)
            _require(kind.what, expected, now, name)
            return [kind.removed(name, command.by)]
        case _:
            assert_never(command)


def version_after(kind: Kind[D, E], event: E, version: Version) -> Versioned[D]:
    """It, as this last fact leaves it."""
    return Versioned(version=version, definition=kind.definition_in(event))


def _require(what: str, expected: Expected, now: Versioned[Any], name: str) -> None:
    if not expected.is_met_by(now):
        raise VersionMoved(what, name, now.version)
