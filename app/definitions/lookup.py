"""The agents that a tenant has: those of code and settings, and its own, as they are at this moment."""

from app.definitions.history import DefinitionHistory
from app.registry import Catalog
from app.store.event_log import EventLog
from domain.agent import AgentDefinition
from domain.agent_versions import AGENTS, AgentNotFound
from domain.versions import Versioned


class AgentLookup:
    """Those of code and settings cost nothing to find, and stand above all others of their name."""

    def __init__(self, catalog: Catalog, log: EventLog) -> None:
        self._catalog = catalog
        self._own = DefinitionHistory(AGENTS, log)

    async def agent(self, tenant: str, name: str) -> AgentDefinition:
        """Raise AgentNotFound, StoreUnavailable, or UnusableAgent where it names what this host lacks."""
        if self._catalog.has(name):
            return self._catalog.agent(name)
        found = (await self.version(tenant, name)).definition
        if found is None:
            raise AgentNotFound(name)
        self.verify(found)
        return found

    def verify(self, definition: AgentDefinition) -> None:
        """Raise UnusableAgent where the definition has links that are not here."""
        self._catalog.verify(definition)

    async def version(self, tenant: str, name: str) -> Versioned[AgentDefinition]:
        """What was said last over HTTP; version 0 where nothing was. Raise StoreUnavailable."""
        return await self._own.version(tenant, name)
