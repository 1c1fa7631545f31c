"""A version of what is defined over HTTP, as its readers see it, and the last one of each as a row."""

from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from domain.agent import AgentDefinition
from domain.events import AgentDefined, AgentRemoved, WorkflowDefined, WorkflowRemoved
from domain.workflow.definition import WorkflowDefinition
from projections.base import Fact

D = TypeVar("D", AgentDefinition, WorkflowDefinition)


class VersionRecord(msgspec.Struct, Generic[D], frozen=True, kw_only=True):
    """What was said, and when. Versions count from 1, removals too."""

    name: str
    version: int
    definition: D | None
    """Null: it was removed."""
    changed_at: datetime
    changed_by: str | None
    """The API key it was said with; null for a client on this machine without one."""


class AgentVersionRecord(VersionRecord[AgentDefinition], frozen=True, kw_only=True):
    """What was said of the agent, and when. Versions count from 1, removals too."""


class WorkflowVersionRecord(VersionRecord[WorkflowDefinition], frozen=True, kw_only=True):
    """What was said of the workflow, and when. Versions count from 1, removals too."""


def agent_version_of(recorded: Fact) -> AgentVersionRecord | None:
    """None if the event is not of an agent."""
    match recorded.event:
        case AgentDefined(definition=definition, by=by):
            return AgentVersionRecord(name=definition.name, definition=definition, **_said(recorded, by))
        case AgentRemoved(name=name, by=by):
            return AgentVersionRecord(name=name, definition=None, **_said(recorded, by))
        case _:
            return None


def workflow_version_of(recorded: Fact) -> WorkflowVersionRecord | None:
    """None if the event is not of a workflow's definition."""
    match recorded.event:
        case WorkflowDefined(definition=definition, by=by):
            return WorkflowVersionRecord(name=definition.name, definition=definition, **_said(recorded, by))
        case WorkflowRemoved(name=name, by=by):
            return WorkflowVersionRecord(name=name, definition=None, **_said(recorded, by))
        case _:
            return None


def _said(recorded: Fact, by: str | None) -> dict[str, Any]:
    return {"version": recorded.sequence, "changed_at": recorded.at, "changed_by": by}
