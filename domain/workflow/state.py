"""Where a workflow's run stands, by its facts: finished super-steps, the one under way, what people owe."""

from typing import assert_never

import msgspec

from domain.events import workflow as w
from domain.failure import RunError
from domain.ids import RunId
from domain.waiting import InputRequest
from domain.workflow.definition import WorkflowDefinition


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A place that a run can be resumed from."""

    id: str
    step: int
    sequence: int
    """Of the event that made it, in its run's stream."""
    progress: w.Progress


class OpenStep(msgspec.Struct, frozen=True, kw_only=True):
    """The super-step under way."""

    step: int
    nodes: tuple[str, ...]
    attempts: dict[str, int] = {}
    """How often each node was invoked."""
    call_keys: dict[str, str] = {}
    outputs: tuple[w.NodeOutput, ...] = ()
    asked: tuple[InputRequest, ...] = ()
    failed: dict[str, RunError] = {}
    """Nodes whose last attempt is over."""

    @property
    def left(self) -> tuple[str, ...]:
        """The nodes that have come to nothing yet."""
        over = {
            *(output.node for output in self.outputs),
            *(request.node for request in self.asked),
            *self.failed,
        }
        return tuple(node for node in self.nodes if node not in over)


class WorkflowRun(msgspec.Struct, frozen=True, kw_only=True):
    """What later decisions read of a workflow's run."""

    definition: WorkflowDefinition
    definition_version: int = 0
    progress: w.Progress = w.Progress()
    """After the last finished super-step. What is under way is not in it."""
    from_checkpoint: str | None = None
    interrupted: dict[str, RunId] = {}
    """Child runs that nodes of the next super-step go on from: it was cut off in the run before."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """Those of this run."""
    open_step: OpenStep | None = None


def opened(event: w.WorkflowOpened) -> WorkflowRun:
    return WorkflowRun(
        definition=event.definition,
        definition_version=event.definition_version,
        progress=event.progress,
        from_checkpoint=event.from_checkpoint,
        interrupted=event.interrupted,
    )


def evolve(workflow: WorkflowRun, event: w.WorkflowEvent, sequence: int) -> WorkflowRun:  # noqa: C901
    """Fold one fact in. `sequence` is its place in the run's stream."""
    step = workflow.open_step
    match event:
        case w.WorkflowOpened():
            return opened(event)
        case w.SuperStepStarted(step=number, nodes=nodes):
            return _with(workflow, open_step=OpenStep(step=number, nodes=nodes))
        case w.SuperStepCompleted():
            return _completed(workflow, event, sequence)
        case _ if step is None:
            return workflow  # decide lets nothing of this happen outside of a super-step
        case w.NodeInvoked(node=node, attempt=attempt, call_key=key):
            attempts, keys = {**step.attempts, node: attempt}, {**step.call_keys, node: key}
            return _with(workflow, open_step=_with(step, attempts=attempts, call_keys=keys))
        case w.NodeCompleted(output=output):
            return _with(workflow, open_step=_with(step, outputs=(*step.outputs, output)))
        case w.NodeFailed():
            return _with(workflow, open_step=_failed(step, event))
        case w.InputRequested(request=request):
            return _with(workflow, open_step=_with(step, asked=(*step.asked, request)))
        case _:
            assert_never(event)


_with = msgspec.structs.replace


def _failed(step: OpenStep, event: w.NodeFailed) -> OpenStep:
    if event.retry_in_ms is not None:
        return step
    error = RunError(message=event.error, type=event.error_type, error_class=event.error_class)
    return _with(step, failed={**step.failed, event.node: error})


def _completed(workflow: WorkflowRun, event: w.SuperStepCompleted, sequence: int) -> WorkflowRun:
    step = workflow.open_step
    if step is None:
        return workflow
    # In the order of the definition: who was quicker must not change what the next nodes read.
    place = {node: number for number, node in enumerate(step.nodes)}
    outputs = sorted(step.outputs, key=lambda output: place.get(output.node, 0))
    progress = w.Progress(
        step=event.step,
        outputs=(*workflow.progress.outputs, *outputs),
        pending=(*workflow.progress.pending, *step.asked),
    )
    checkpoints = workflow.checkpoints
    if event.checkpoint is not None:
        made = Checkpoint(id=event.checkpoint, step=event.step, sequence=sequence, progress=progress)
        checkpoints = (*checkpoints, made)
    return _with(workflow, progress=progress, checkpoints=checkpoints, open_step=None, interrupted={})


def answered(progress: w.Progress, request: InputRequest, output: w.NodeOutput) -> w.Progress:
    """The progress with a person's answer, which stands in the super-step in which it was asked for."""
    return _with(
        progress,
        outputs=(*progress.outputs, output),
        pending=tuple(one for one in progress.pending if one.id != request.id),
    )
