"""What a run is started with: its agent as it is defined today, and what the submission asks over that."""

from app.definitions.lookup import AgentLookup
from app.registry import Catalog
from domain.agent import AgentDefinition
from domain.commands import CreateRun
from domain.events import RunCreated
from domain.parameters import instantiate
from domain.submission import overridden


def defined(catalog: Catalog, asked: CreateRun | RunCreated) -> AgentDefinition:
    """The definition that the run starts with today. Raise AgentNotFound or BadParameter."""
    return overridden(instantiate(catalog.agent(asked.agent), asked.parameters), asked.overrides)


async def looked_up(agents: AgentLookup, asked: CreateRun | RunCreated) -> AgentDefinition:
    """The same, of an agent that may be the tenant's own. Raise also UnusableAgent or StoreUnavailable."""
    definition = await agents.agent(asked.tenant, asked.agent)
    return overridden(instantiate(definition, asked.parameters), asked.overrides)
