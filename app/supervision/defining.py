"""What a run is started with: its agent as it is defined today, and what the submission asks over that."""

from app.definitions.lookup import AgentLookup
from domain.agent import AgentDefinition
from domain.commands import CreateRun
from domain.events import RunCreated
from domain.parameters import instantiate
from domain.submission import overridden


async def looked_up(agents: AgentLookup, asked: CreateRun | RunCreated) -> AgentDefinition:
    """The definition that the run starts with today: of code, of the settings, or the tenant's own.

    Raise AgentNotFound, UnusableAgent, BadParameter or StoreUnavailable.
    """
    definition = await agents.agent(asked.tenant, asked.agent)
    return overridden(instantiate(definition, asked.parameters), asked.overrides)
