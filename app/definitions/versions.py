"""Defining agents over HTTP: checked like those of the settings, one version after the other."""

from app.definitions.history import Defined, DefinitionHistory
from app.definitions.lookup import AgentLookup
from app.registry import Catalog
from app.store.event_log import EventLog
from app.workflow_catalog import WorkflowCatalog
from domain.agent import AgentDefinition
from domain.agent_versions import AGENTS
from domain.errors import Conflict, Rejected
from domain.events import Recorded, WorkflowDefined
from domain.events.agent import AgentEvent
from domain.ids import workflow_stream
from domain.versions import Define, Expected, Remove


class AgentReadOnly(Conflict):
    """The agent is defined where HTTP does not reach. Change it there, or take another name."""

    code = "agent_read_only"

    def __init__(self, name: str, source: str) -> None:
        super().__init__(f"agent {name!r} is defined in {source} and can be changed only there")


class InvalidDefinition(Rejected):
    """The definition does not fit what this host has. `problems` say what of it, key by key."""

    code = "invalid_definition"

    def __init__(self, name: str, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__(f"agent {name!r}: " + "; ".join(f"{key}: {reason}" for key, reason in problems))
        self.problems = problems


class AgentVersions:
    """Every method raises StoreUnavailable."""

    def __init__(
        self, catalog: Catalog, workflows: WorkflowCatalog, lookup: AgentLookup, log: EventLog
    ) -> None:
        self._catalog = catalog
        self._workflows = workflows
        self._lookup = lookup
        self._log = log
        self._history = DefinitionHistory(AGENTS, log)

    async def define(
        self, tenant: str, definition: AgentDefinition, expected: Expected, by: str | None
    ) -> Defined:
        """Raise AgentReadOnly, InvalidDefinition or VersionMoved. The same again is no new version."""
        self._require_ours(definition.name)
        await self._require_no_workflow(tenant, definition.name)
        own = await self._own(tenant, definition)
        if problems := tuple(self._catalog.flaws_of(definition, own)):
            raise InvalidDefinition(definition.name, problems)
        command = Define(definition=definition, by=by)
        return await self._history.execute(tenant, definition.name, command, expected)

    async def remove(self, tenant: str, name: str, expected: Expected, by: str | None) -> Defined:
        """Raise AgentReadOnly, AgentNotFound or VersionMoved. Its runs go on; no other begins."""
        self._require_ours(name)
        return await self._history.execute(tenant, name, Remove(name=name, by=by), expected)

    async def history(self, tenant: str, name: str) -> list[Recorded[AgentEvent]]:
        """Every version, oldest first. Raise AgentReadOnly or AgentNotFound."""
        self._require_ours(name)
        return await self._history.all_versions(tenant, name)

    async def _own(self, tenant: str, definition: AgentDefinition) -> dict[str, AgentDefinition]:
        """Agents of the tenant that this one names. It may ask itself; how deep, the tree's budget says."""
        own = {definition.name: definition}
        for name in {*definition.agents} - {definition.name}:
            found = None if self._catalog.has(name) else await self._lookup.version(tenant, name)
            if found is not None and found.definition is not None:
                own[name] = found.definition
        return own

    async def _require_no_workflow(self, tenant: str, name: str) -> None:
        """Raise InvalidDefinition where there is a workflow of this name, here or of the tenant's own."""
        last = await self._log.read_last(workflow_stream(tenant, name))
        if self._workflows.find(name) is not None or (last and isinstance(last.event, WorkflowDefined)):
            raise InvalidDefinition(name, (("name", "a workflow has this name; give one of them another"),))

    def _require_ours(self, name: str) -> None:
        if (source := self._catalog.source_of(name)) is not None:
            raise AgentReadOnly(name, source)
