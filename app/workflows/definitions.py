"""Which workflow a name means, and defining workflows over HTTP: checked like those of the settings."""

from typing import NamedTuple

import asyncpg

from app.definitions.history import Defined, DefinitionHistory
from app.definitions.lookup import AgentLookup
from app.store.event_log import EventLog
from app.workflow_catalog import UnusableWorkflow, WorkflowCatalog
from domain.agent import AgentDefinition
from domain.errors import Conflict
from domain.events import Recorded, WorkflowDefinitionEvent
from domain.versions import Define, Expected, Remove
from domain.workflow.definition import WorkflowDefinition
from domain.workflow.versions import WORKFLOWS, WorkflowNotFound
from projections.read.workflows import defined_workflows


class WorkflowReadOnly(Conflict):
    """The workflow is defined where HTTP does not reach. Change it there, or take another name."""

    code = "workflow_read_only"

    def __init__(self, name: str) -> None:
        super().__init__(f"workflow {name!r} is defined in code or settings and can be changed only there")


class Found(NamedTuple):
    """A workflow as it is defined now. Version 0: in code or settings, where nobody counts."""

    definition: WorkflowDefinition
    version: int = 0


class WorkflowDefinitions:
    """Those of code and settings stand above all others of their name. All methods raise StoreUnavailable."""

    def __init__(
        self, catalog: WorkflowCatalog, agents: AgentLookup, log: EventLog, pool: asyncpg.Pool
    ) -> None:
        self._catalog = catalog
        self._agents = agents
        self._history = DefinitionHistory(WORKFLOWS, log)
        self._pool = pool

    async def runnable(self, tenant: str, name: str) -> Found:
        """Raise WorkflowNotFound, or UnusableWorkflow where it names what this host lacks."""
        found = await self.find(tenant, name)
        if found.version:
            self._catalog.verify(found.definition, await self._own_agents(tenant, found.definition))
        return found

    async def find(self, tenant: str, name: str) -> Found:
        """Raise WorkflowNotFound."""
        fixed = self._catalog.find(name)
        if fixed is not None:
            return Found(fixed)
        now = await self._history.version(tenant, name)
        if now.definition is None:
            raise WorkflowNotFound(name)
        return Found(now.definition, now.version)

    async def listed(self, tenant: str) -> tuple[Found, ...]:
        """All of them, by name; the tenant's own maybe some milliseconds behind."""
        fixed = [Found(one) for one in self._catalog.workflows()]
        own = [Found(definition, version) for definition, version in await self._own(tenant)]
        both = (*fixed, *(one for one in own if self._catalog.find(one.definition.name) is None))
        return tuple(sorted(both, key=lambda one: one.definition.name))

    async def define(
        self, tenant: str, definition: WorkflowDefinition, expected: Expected, by: str | None
    ) -> Defined:
        """Raise WorkflowReadOnly, UnusableWorkflow or VersionMoved. The same again is no new version."""
        name = definition.name
        self._require_ours(name)
        self._catalog.verify(definition, await self._own_agents(tenant, definition))
        if (await self._agents.version(tenant, name)).definition is not None:
            raise UnusableWorkflow(name, [("name", "an agent has this name; give one of them another")])
        command = Define(definition=definition, by=by)
        return await self._history.execute(tenant, name, command, expected)

    async def remove(self, tenant: str, name: str, expected: Expected, by: str | None) -> Defined:
        """Raise WorkflowReadOnly, WorkflowNotFound or VersionMoved. Its runs go on; no other begins."""
        self._require_ours(name)
        return await self._history.execute(tenant, name, Remove(name=name, by=by), expected)

    async def history(self, tenant: str, name: str) -> list[Recorded[WorkflowDefinitionEvent]]:
        """Every version, oldest first. Raise WorkflowReadOnly or WorkflowNotFound."""
        self._require_ours(name)
        return await self._history.all_versions(tenant, name)

    async def _own_agents(self, tenant: str, workflow: WorkflowDefinition) -> dict[str, AgentDefinition]:
        """Those of its agents that the tenant has defined over HTTP."""
        found = {}
        for name in {node.agent for node in workflow.members if node.agent is not None}:
            if not self._catalog.has_agent(name):
                own = (await self._agents.version(tenant, name)).definition
                if own is not None:
                    found[name] = own
        return found

    async def _own(self, tenant: str) -> tuple[tuple[WorkflowDefinition, int], ...]:
        return await defined_workflows(self._pool, tenant)

    def _require_ours(self, name: str) -> None:
        if self._catalog.find(name) is not None:
            raise WorkflowReadOnly(name)
