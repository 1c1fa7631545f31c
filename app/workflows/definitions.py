"""Which workflow a name means, and defining workflows over HTTP: checked like those of the settings.

Nobody keeps a copy of what was defined over HTTP. Whoever begins a run of such a workflow reads its last
version, one row, so every host acts on a change from the moment on that it was recorded.
"""

from typing import NamedTuple, cast

import asyncpg
import msgspec

from app.definitions.lookup import AgentLookup
from app.store.event_log import Change, EventLog, VersionConflict
from app.workflow_catalog import UnusableWorkflow, WorkflowCatalog
from domain.agent import AgentDefinition
from domain.agent_versions import Expected
from domain.errors import Conflict
from domain.events import Recorded, WorkflowDefinitionEvent
from domain.ids import Version, workflow_stream
from domain.workflow_definition import WorkflowDefinition
from domain.workflow_versions import (
    DefineWorkflow,
    RemoveWorkflow,
    WorkflowNotFound,
    WorkflowVersion,
    decide,
    version_after,
)
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


class DefinedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """What a workflow is now, and whether it has just come to be."""

    recorded: Recorded[WorkflowDefinitionEvent]
    is_new: bool = False


class WorkflowDefinitions:
    """Those of code and settings stand above all others of their name. All methods raise StoreUnavailable."""

    def __init__(
        self, catalog: WorkflowCatalog, agents: AgentLookup, log: EventLog, pool: asyncpg.Pool
    ) -> None:
        self._catalog = catalog
        self._agents = agents
        self._log = log
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
        now = await self._version(tenant, name)
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
    ) -> DefinedWorkflow:
        """Raise WorkflowReadOnly, UnusableWorkflow or WorkflowMoved. The same again is no new version."""
        name = definition.name
        self._require_ours(name)
        self._catalog.verify(definition, await self._own_agents(tenant, definition))
        if (await self._agents.version(tenant, name)).definition is not None:
            raise UnusableWorkflow(name, [("name", "an agent has this name; give one of them another")])
        return await self._execute(tenant, name, DefineWorkflow(definition=definition, by=by), expected)

    async def remove(self, tenant: str, name: str, expected: Expected, by: str | None) -> DefinedWorkflow:
        """Raise WorkflowReadOnly, WorkflowNotFound or WorkflowMoved. Its runs go on; no other begins."""
        self._require_ours(name)
        return await self._execute(tenant, name, RemoveWorkflow(name=name, by=by), expected)

    async def history(self, tenant: str, name: str) -> list[Recorded[WorkflowDefinitionEvent]]:
        """Every version, oldest first. Raise WorkflowReadOnly or WorkflowNotFound."""
        self._require_ours(name)
        recorded = await self._log.read_stream(workflow_stream(tenant, name))
        if not recorded:
            raise WorkflowNotFound(name)
        return cast(list[Recorded[WorkflowDefinitionEvent]], recorded)

    async def _execute(
        self, tenant: str, name: str, command: DefineWorkflow | RemoveWorkflow, expected: Expected
    ) -> DefinedWorkflow:
        stream = workflow_stream(tenant, name)
        while True:
            now = await self._version(tenant, name)
            events = decide(now, command, expected)
            if not events:
                return DefinedWorkflow(recorded=(await self.history(tenant, name))[-1])
            change = Change(stream_id=stream, expected=now.version, tenant=tenant, events=tuple(events))
            try:
                [recorded] = await self._log.append(change)
            except VersionConflict:
                continue  # somebody else was first: see whether it is still as it was expected to be
            kept = cast(Recorded[WorkflowDefinitionEvent], recorded)
            return DefinedWorkflow(recorded=kept, is_new=now.definition is None)

    async def _own_agents(self, tenant: str, workflow: WorkflowDefinition) -> dict[str, AgentDefinition]:
        """Those of its agents that the tenant has defined over HTTP."""
        found = {}
        for name in {node.agent for node in workflow.members if node.agent is not None}:
            if not self._catalog.has_agent(name):
                own = (await self._agents.version(tenant, name)).definition
                if own is not None:
                    found[name] = own
        return found

    async def _version(self, tenant: str, name: str) -> WorkflowVersion:
        last = await self._log.read_last(workflow_stream(tenant, name))
        if last is None:
            return WorkflowVersion()
        return version_after(cast(WorkflowDefinitionEvent, last.event), Version(last.sequence))

    async def _own(self, tenant: str) -> tuple[tuple[WorkflowDefinition, int], ...]:
        return await defined_workflows(self._pool, tenant)

    def _require_ours(self, name: str) -> None:
        if self._catalog.find(name) is not None:
            raise WorkflowReadOnly(name)
