"""Facts of a workflow's run: its super-steps, what its nodes came to, what it asks people (WF)."""

import msgspec

from domain.event import Event
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.waiting import InputRequest
from domain.workflow.definition import NodeKind, WorkflowDefinition


class NodeOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a node came to in super-step `step`. `handoff_to` and `done` are what it decided."""

    step: int
    node: str
    text: str
    handoff_to: str | None = None
    done: bool = False


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that there is to know after a super-step: what a checkpoint is."""

    step: int = 0
    """How many super-steps are finished, over all runs of the chain."""
    outputs: tuple[NodeOutput, ...] = ()
    pending: tuple[InputRequest, ...] = ()
    """What people were asked and have not answered."""


class WorkflowOpened(Event, frozen=True, kw_only=True, tag="workflow.opened.v1"):
    """The run is of this workflow, as it was defined then. Later edits do not touch it, nor who continues it.

    `progress` is where it begins: at the start, or at the checkpoint of an earlier run. `interrupted`: the
    child runs that nodes of its first super-step were at when that was cut off in the run before; what those
    had their tools do is not done again.
    """

    definition: WorkflowDefinition
    definition_version: int = 0
    """Which version of a definition that was saved over HTTP; 0: one of code or settings."""
    progress: Progress = Progress()
    from_checkpoint: str | None = None
    interrupted: dict[str, RunId] = {}


class SuperStepStarted(Event, frozen=True, kw_only=True, tag="super-step.started.v1"):
    """These nodes are run together. `step` counts from 1, over all runs of the chain."""

    step: int
    nodes: tuple[str, ...]


class NodeInvoked(Event, frozen=True, kw_only=True, tag="workflow-node.invoked.v1"):
    """Committed before the node does anything (EVENT-2). `attempt` counts from 1 within its super-step.

    `call_key` is its idempotency key outside: the same when the node is repeated after a crash.
    """

    step: int
    node: str
    kind: NodeKind
    attempt: int = 1
    call_key: str = ""


class NodeCompleted(Event, frozen=True, kw_only=True, tag="workflow-node.completed.v1"):
    """The node has its output."""

    output: NodeOutput
    duration_ms: int = 0


class NodeFailed(Event, frozen=True, kw_only=True, tag="workflow-node.failed.v1"):
    """An attempt failed. With `retry_in_ms` there is another one after that time; else it was the last."""

    step: int
    node: str
    attempt: int
    error: str
    error_type: str
    error_class: ErrorClass
    retry_in_ms: int | None = None
    duration_ms: int = 0


class InputRequested(Event, frozen=True, kw_only=True, tag="workflow.input-requested.v1"):
    """A person is asked. The run waits for the answer once its super-step is over (WF-3)."""

    step: int
    request: InputRequest


class SuperStepCompleted(Event, frozen=True, kw_only=True, tag="super-step.completed.v1"):
    """All nodes of the super-step are done: what is before this event is not run again (WF-2).

    `checkpoint` names this place, where checkpoints are kept.
    """

    step: int
    checkpoint: str | None = None


class InputAnswered(Event, frozen=True, kw_only=True, tag="workflow.input-answered.v1"):
    """A person has answered what this run asked. It follows the run's end, which waited for that (WF-3)."""

    request_id: str
    node: str
    answer: str


WorkflowEvent = (
    WorkflowOpened
    | SuperStepStarted
    | NodeInvoked
    | NodeCompleted
    | NodeFailed
    | InputRequested
    | SuperStepCompleted
)
