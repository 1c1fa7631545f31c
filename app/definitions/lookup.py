"""The agents that a tenant has: those of code and settings, and its own, as they are at this moment.

Nobody keeps a copy of what was defined over HTTP. Whoever begins a run of such an agent reads its last
version, one row, so every host acts on a change from the moment on that it was recorded.
"""

from typing import cast

from app.registry import AgentNotFound, Catalog
from app.store.event_log import EventLog
from domain.agent import AgentDefinition
from domain.agent_events import AgentEvent
from domain.agent_versions import AgentVersion, version_after
from domain.ids import agent_stream


class AgentLookup:
    """Those of code and settings cost nothing to find, and stand above all others of their name."""

    def __init__(self, catalog: Catalog, log: EventLog) -> None:
        self._catalog = catalog
        self._log = log

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

    async def version(self, tenant: str, name: str) -> AgentVersion:
        """What was said last over HTTP; version 0 where nothing was. Raise StoreUnavailable."""
        last = await self._log.read_last(agent_stream(tenant, name))
        if last is None:
            return AgentVersion()
        return version_after(cast(AgentEvent, last.event), last.sequence)
