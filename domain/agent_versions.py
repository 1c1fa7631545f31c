"""Agents that are defined over HTTP, as a kind of what has versions."""

from domain.agent import AgentDefinition
from domain.errors import NotFound
from domain.events.agent import AgentDefined, AgentEvent, AgentRemoved
from domain.ids import agent_stream
from domain.versions import Kind


class AgentNotFound(NotFound):
    """No agent has this name. Ask for one of those that are listed."""

    code = "agent_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no agent {name!r}")


def _definition_in(event: AgentEvent) -> AgentDefinition | None:
    return event.definition if isinstance(event, AgentDefined) else None


AGENTS: Kind[AgentDefinition, AgentEvent] = Kind(
    what="agent",
    stream=agent_stream,
    defined=lambda definition, by: AgentDefined(definition=definition, by=by),
    removed=lambda name, by: AgentRemoved(name=name, by=by),
    definition_in=_definition_in,
    not_found=AgentNotFound,
)
