"""Workflows that are defined over HTTP, as a kind of what has versions."""

from domain.errors import NotFound
from domain.events.workflow_definition import WorkflowDefined, WorkflowDefinitionEvent, WorkflowRemoved
from domain.ids import workflow_stream
from domain.versions import Kind
from domain.workflow.definition import WorkflowDefinition


class WorkflowNotFound(NotFound):
    """No workflow has this name. Run one of those that are listed."""

    code = "workflow_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no workflow {name!r}")


def _definition_in(event: WorkflowDefinitionEvent) -> WorkflowDefinition | None:
    return event.definition if isinstance(event, WorkflowDefined) else None


WORKFLOWS: Kind[WorkflowDefinition, WorkflowDefinitionEvent] = Kind(
    what="workflow",
    stream=workflow_stream,
    defined=lambda definition, by: WorkflowDefined(definition=definition, by=by),
    removed=lambda name, by: WorkflowRemoved(name=name, by=by),
    definition_in=_definition_in,
    not_found=WorkflowNotFound,
)
