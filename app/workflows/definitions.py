"""Which workflow a name means."""

from typing import NamedTuple

from app.workflow_catalog import WorkflowCatalog, WorkflowNotFound
from domain.workflow_definition import WorkflowDefinition


class Found(NamedTuple):
    """A workflow as it is defined now. Version 0: in code or settings, where nobody counts."""

    definition: WorkflowDefinition
    version: int = 0


class WorkflowDefinitions:
    """Those of code and settings."""

    def __init__(self, catalog: WorkflowCatalog) -> None:
        self._catalog = catalog

    async def find(self, tenant: str, name: str) -> Found:
        """Raise WorkflowNotFound."""
        fixed = self._catalog.find(name)
        if fixed is None:
            raise WorkflowNotFound(name)
        return Found(fixed)

    async def listed(self, tenant: str) -> tuple[Found, ...]:
        """All of them, by name."""
        return tuple(Found(one) for one in self._catalog.workflows())
