"""A workflow that is defined over HTTP: its version is how often it was defined or removed."""

from typing import assert_never

import msgspec

from domain import workflow_definition_events as w
from domain.agent_versions import Expected
from domain.errors import Conflict, NotFound
from domain.ids import Version
from domain.workflow_definition import WorkflowDefinition


class WorkflowMoved(Conflict):
    """The workflow is at another version than was asked for. Read it again, decide again."""

    code = "version_mismatch"

    def __init__(self, name: str, version: Version) -> None:
        super().__init__(f"workflow {name!r} is at version {version} now")
        self.version = version


class WorkflowNotFound(NotFound):
    """No workflow has this name. Run one of those that are listed."""

    code = "workflow_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no workflow {name!r}")


class WorkflowVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Where the workflow is; without a definition it was removed, or never there."""

    version: Version = Version(0)
    definition: WorkflowDefinition | None = None


class DefineWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    definition: WorkflowDefinition
    by: str | None = None


class RemoveWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    by: str | None = None


def decide(
    now: WorkflowVersion, command: DefineWorkflow | RemoveWorkflow, expected: Expected
) -> list[w.WorkflowDefinitionEvent]:
    """Return the facts that follow, or raise. An empty list: it is just that already."""
    match command:
        case DefineWorkflow(definition=definition):
            _require(expected, now, definition.name)
            if definition == now.definition:
                return []
            return [w.WorkflowDefined(definition=definition, by=command.by)]
        case RemoveWorkflow(name=name):
            if now.definition is None:
                raise WorkflowNotFound(name)
            _require(expected, now, name)
            return [w.WorkflowRemoved(name=name, by=command.by)]
        case _:
            assert_never(command)


def version_after(event: w.WorkflowDefinitionEvent, version: Version) -> WorkflowVersion:
    """The workflow as this, its last event, leaves it."""
    match event:
        case w.WorkflowDefined(definition=definition):
            return WorkflowVersion(version=version, definition=definition)
        case w.WorkflowRemoved():
            return WorkflowVersion(version=version)
        case _:
            assert_never(event)


def _require(expected: Expected, now: WorkflowVersion, name: str) -> None:
    if not expected.is_met_by(now):
        raise WorkflowMoved(name, now.version)
