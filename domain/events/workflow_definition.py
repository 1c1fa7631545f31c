"""What may be said of a workflow that is defined over HTTP. Each fact is a version of it."""

from domain.event import Event
from domain.workflow.definition import WorkflowDefinition


class WorkflowDefined(Event, frozen=True, kw_only=True, tag="workflow.defined.v1"):
    """The workflow is this from now on, for runs that begin. `by`: whose API key; None if there was none."""

    definition: WorkflowDefinition
    by: str | None = None


class WorkflowRemoved(Event, frozen=True, kw_only=True, tag="workflow.removed.v1"):
    """There is no such workflow any more. Its versions stay, and go on counting if it is defined again."""

    name: str
    by: str | None = None


WorkflowDefinitionEvent = WorkflowDefined | WorkflowRemoved
