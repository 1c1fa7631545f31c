"""A version of a workflow that is defined over HTTP, as its readers see it."""

from datetime import datetime

import msgspec

from domain import events as e
from domain.workflow_definition import WorkflowDefinition
from projections.base import Fact


class WorkflowVersionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of the workflow, and when. Versions count from 1, removals too."""

    name: str
    version: int
    definition: WorkflowDefinition | None
    """Null: the workflow was removed."""
    changed_at: datetime
    changed_by: str | None
    """The API key it was said with; null for a client on this machine without one."""


def version_of(recorded: Fact) -> WorkflowVersionRecord | None:
    """None if the event is not of a workflow's definition."""
    match recorded.event:
        case e.WorkflowDefined(definition=definition, by=by):
            return _record(recorded, definition.name, definition, by)
        case e.WorkflowRemoved(name=name, by=by):
            return _record(recorded, name, None, by)
        case _:
            return None


def _record(
    recorded: Fact, name: str, definition: WorkflowDefinition | None, by: str | None
) -> WorkflowVersionRecord:
    return WorkflowVersionRecord(
        name=name,
        version=recorded.sequence,
        definition=definition,
        changed_at=recorded.at,
        changed_by=by,
    )
