"""What may be said of an agent that is defined over HTTP. Each fact is a version of it."""

from domain.agent import AgentDefinition
from domain.event import Event


class AgentDefined(Event, frozen=True, kw_only=True, tag="agent.defined.v1"):
    """The agent is this from now on, for runs that begin. `by`: whose API key; None if there was none."""

    definition: AgentDefinition
    by: str | None = None


class AgentRemoved(Event, frozen=True, kw_only=True, tag="agent.removed.v1"):
    """There is no such agent any more. Its versions stay, and go on counting if it is defined again."""

    name: str
    by: str | None = None


AgentEvent = AgentDefined | AgentRemoved
