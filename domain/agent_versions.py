"""An agent that is defined over HTTP: its version is how often it was defined or removed."""

from typing import Protocol, assert_never

import msgspec

from domain import agent_events as a
from domain.agent import AgentDefinition
from domain.errors import Conflict, NotFound
from domain.ids import Version


class AgentMoved(Conflict):
    """The agent is at another version than was asked for. Read it again, decide again."""

    code = "version_mismatch"

    def __init__(self, name: str, version: Version) -> None:
        super().__init__(f"agent {name!r} is at version {version} now")
        self.version = version


class NotDefinedHere(NotFound):
    """No agent of this name is defined over HTTP in this tenant."""

    code = "agent_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no agent {name!r}")


class AgentVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Where the agent is; without a definition it was removed, or never there."""

    version: Version = Version(0)
    definition: AgentDefinition | None = None


class Versioned(Protocol):
    """Something that is at a version, and may have a definition there."""

    @property
    def version(self) -> Version: ...

    @property
    def definition(self) -> object | None: ...


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller has seen. `version`: just that one; `exists`: some definition, or none."""

    version: int | None = None
    exists: bool | None = None

    def is_met_by(self, now: Versioned) -> bool:
        if self.version is not None and self.version != now.version:
            return False
        return self.exists is None or self.exists is (now.definition is not None)


class Define(msgspec.Struct, frozen=True, kw_only=True):
    definition: AgentDefinition
    by: str | None = None


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    by: str | None = None


def decide(now: AgentVersion, command: Define | Remove, expected: Expected) -> list[a.AgentEvent]:
    """Return the facts that follow, or raise. An empty list: it is just that already."""
    match command:
        case Define(definition=definition):
            _require(expected, now, definition.name)
            if definition == now.definition:
                return []
            return [a.AgentDefined(definition=definition, by=command.by)]
        case Remove(name=name):
            if now.definition is None:
                raise NotDefinedHere(name)
            _require(expected, now, name)
            return [a.AgentRemoved(name=name, by=command.by)]
        case _:
            assert_never(command)


def version_after(event: a.AgentEvent, version: Version) -> AgentVersion:
    """The agent as this, its last event, leaves it."""
    match event:
        case a.AgentDefined(definition=definition):
            return AgentVersion(version=version, definition=definition)
        case a.AgentRemoved():
            return AgentVersion(version=version)
        case _:
            assert_never(event)


def _require(expected: Expected, now: AgentVersion, name: str) -> None:
    if not expected.is_met_by(now):
        raise AgentMoved(name, now.version)
