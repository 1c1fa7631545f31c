"""One event for each golden file of a workflow's facts, every field away from its default."""

from uuid import UUID

from domain.event import Event
from domain.events.workflow import (
    InputAnswered,
    InputRequested,
    NodeCompleted,
    NodeFailed,
    NodeInvoked,
    NodeOutput,
    Progress,
    SuperStepCompleted,
    SuperStepStarted,
    WorkflowOpened,
)
from domain.events.workflow_definition import WorkflowDefined, WorkflowRemoved
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.waiting import InputRequest
from domain.workflow.definition import (
    NodeKind,
    WorkflowDefinition,
    WorkflowKind,
    WorkflowNode,
    WorkflowStage,
)

_OUTPUT = NodeOutput(step=2, node="write", text="A draft \u2708", handoff_to="approve", done=True)
_REQUEST = InputRequest(id="r1", node="approve", prompt="Publish?", schema={"type": "string"})
_DEFINITION = WorkflowDefinition(
    name="publish",
    kind=WorkflowKind.SEQUENTIAL,
    description="From a question to a page.",
    nodes=(
        WorkflowStage(
            name="write",
            agent="writer",
            message="About {{ input }}",
            parameters={"tone": "dry"},
            to=("approve",),
        ),
        WorkflowStage(name="approve", ask="Publish?", answers=("yes", "no")),
        WorkflowStage(
            name="out", together=(WorkflowNode(name="a", function="post"), WorkflowNode(name="b", agent="b"))
        ),
    ),
    join=WorkflowNode(name="j", function="join"),
    manager=WorkflowNode(name="m", agent="lead"),
    max_iterations=7,
)

WORKFLOW_SAMPLES: dict[str, Event] = {
    "workflow.opened.v1": WorkflowOpened(
        definition=_DEFINITION,
        definition_version=3,
        progress=Progress(step=2, outputs=(_OUTPUT,), pending=(_REQUEST,)),
        from_checkpoint="01a22a29:2",
    ),
    "workflow.opened.v1+interrupted": WorkflowOpened(
        definition=_DEFINITION, interrupted={"write": RunId(UUID(int=7))}
    ),
    "super-step.started.v1": SuperStepStarted(step=3, nodes=("a", "b")),
    "workflow-node.invoked.v1": NodeInvoked(
        step=3, node="a", kind=NodeKind.FUNCTION, attempt=2, call_key="tk_1"
    ),
    "workflow-node.completed.v1": NodeCompleted(output=_OUTPUT, duration_ms=12),
    "workflow-node.failed.v1": NodeFailed(
        step=3,
        node="a",
        attempt=2,
        error="no connection",
        error_type="node_failed",
        error_class=ErrorClass.INTERNAL,
        retry_in_ms=500,
        duration_ms=12,
    ),
    "workflow.input-requested.v1": InputRequested(step=3, request=_REQUEST),
    "super-step.completed.v1": SuperStepCompleted(step=3, checkpoint="01a22a29:3"),
    "workflow.defined.v1": WorkflowDefined(definition=_DEFINITION, by="k1"),
    "workflow.removed.v1": WorkflowRemoved(name="publish", by="k1"),
    "workflow.input-answered.v1": InputAnswered(request_id="r1", node="approve", answer="yes"),
}
