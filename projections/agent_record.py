"""A version of an agent that is defined over HTTP, as its readers see it."""

from datetime import datetime
from typing import get_args

import msgspec

from domain import events as e
from domain.agent import AgentDefinition
from projections.base import Fact

AGENT_EVENTS: tuple[type[e.Event], ...] = get_args(e.AgentEvent)


class AgentVersionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of the agent, and when. Versions count from 1, removals too."""

    name: str
    version: int
    definition: AgentDefinition | None
    """Null: the agent was removed."""
    changed_at: datetime
    changed_by: str | None
    """The API key it was said with; null for a client on this machine without one."""


def version_of(recorded: Fact) -> AgentVersionRecord | None:
    """None if the event is not of an agent."""
    match recorded.event:
        case e.AgentDefined(definition=definition, by=by):
            return _record(recorded, definition.name, definition, by)
        case e.AgentRemoved(name=name, by=by):
            return _record(recorded, name, None, by)
        case _:
            return None


def _record(
    recorded: Fact, name: str, definition: AgentDefinition | None, by: str | None
) -> AgentVersionRecord:
    return AgentVersionRecord(
        name=name,
        version=recorded.sequence,
        definition=definition,
        changed_at=recorded.at,
        changed_by=by,
    )
