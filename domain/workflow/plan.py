"""What a running workflow does next. Pure: the same facts always give the same answer (WF-1, WF-2)."""

from collections.abc import Callable, Sequence

import msgspec

from domain.events.workflow import NodeOutput, Progress
from domain.failure import ErrorClass, RunError
from domain.waiting import InputRequest
from domain.workflow.definition import NodeKind, WorkflowDefinition, WorkflowKind, WorkflowNode
from domain.workflow.state import WorkflowRun
from domain.workflow.texts import in_one, targets_of


class WorkflowLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one workflow, over all runs of its chain."""

    max_super_steps: int = 100
    checkpointing: bool = True


class BeginStep(msgspec.Struct, frozen=True, kw_only=True):
    """Begin a super-step with these nodes."""

    nodes: tuple[WorkflowNode, ...]


class RunNodes(msgspec.Struct, frozen=True, kw_only=True):
    """Have these nodes of the super-step come to something, all at once."""

    nodes: tuple[WorkflowNode, ...]


class FinishStep(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes of the super-step are done."""


class WaitForPeople(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing goes on without these answers: end the run until they are there."""

    requests: tuple[InputRequest, ...]


class CompleteWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    answer: str


class GiveUpWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    error: RunError


WorkflowAction = BeginStep | RunNodes | FinishStep | WaitForPeople | CompleteWorkflow | GiveUpWorkflow


def next_action(workflow: WorkflowRun, given: str, limits: WorkflowLimits) -> WorkflowAction:
    """`given` is the workflow's own input."""
    if step := workflow.open_step:
        if step.left:
            return RunNodes(nodes=tuple(workflow.definition.node(name) for name in step.left))
        if step.failed:
            first = next(node for node in step.nodes if node in step.failed)
            return GiveUpWorkflow(error=step.failed[first])
        return FinishStep()
    progress = workflow.progress
    if progress.pending:
        if limits.checkpointing:
            return WaitForPeople(requests=progress.pending)
        return GiveUpWorkflow(error=_cannot_wait(progress.pending[0]))
    action = planned(workflow.definition, progress, given)
    if isinstance(action, BeginStep) and progress.step >= limits.max_super_steps:
        return GiveUpWorkflow(error=_too_many_steps(limits))
    return action


Planned = BeginStep | CompleteWorkflow | GiveUpWorkflow
Plan = Callable[[WorkflowDefinition, Progress, str], Planned]


def planned(definition: WorkflowDefinition, progress: Progress, given: str) -> Planned:
    """What follows this progress, were there no limit on super-steps."""
    return _PLANS[definition.kind](definition, progress, given)


def _sequential(definition: WorkflowDefinition, progress: Progress, given: str) -> Planned:
    if progress.step < len(definition.nodes):
        return BeginStep(nodes=definition.nodes[progress.step].members)
    return CompleteWorkflow(answer=_of_last_step(progress))


def _concurrent(definition: WorkflowDefinition, progress: Progress, given: str) -> Planned:
    if progress.step == 0:
        return BeginStep(nodes=definition.nodes)
    if progress.step == 1 and definition.join is not None:
        return BeginStep(nodes=(definition.join,))
    return CompleteWorkflow(answer=_of_last_step(progress))


def _handoff(definition: WorkflowDefinition, progress: Progress, given: str) -> Planned:
    if not progress.outputs:
        return BeginStep(nodes=(definition.nodes[0],))
    last = progress.outputs[-1]
    node, wanted = definition.node(last.node), last.handoff_to
    if wanted is None and node.kind is NodeKind.PERSON:
        wanted = _who_asked(definition, progress.outputs)  # a person answers whoever turned to them
    if wanted is None:
        return CompleteWorkflow(answer=last.text)
    if wanted not in targets_of(definition, node):
        return GiveUpWorkflow(error=_nobody(last.node, wanted, targets_of(definition, node)))
    if len(progress.outputs) >= definition.max_iterations:
        return GiveUpWorkflow(error=_too_many_iterations(definition, "handoff_limit_exceeded"))
    return BeginStep(nodes=(definition.node(wanted),))


def _who_asked(definition: WorkflowDefinition, outputs: Sequence[NodeOutput]) -> str | None:
    return outputs[-2].node if len(outputs) > 1 else None


def _group_chat(definition: WorkflowDefinition, progress: Progress, given: str) -> Planned:
    manager = definition.manager
    last = progress.outputs[-1] if progress.outputs else None
    said = [one for one in progress.outputs if manager is None or one.node != manager.name]
    if last is not None and last.done:
        return CompleteWorkflow(answer=said[-1].text if said else last.text)
    if len(said) >= definition.max_iterations:
        return GiveUpWorkflow(error=_too_many_iterations(definition, "group_chat_limit_exceeded"))
    if manager is None:
        return BeginStep(nodes=(definition.nodes[len(said) % len(definition.nodes)],))
    if last is None or last.node != manager.name:
        return BeginStep(nodes=(manager,))
    names = tuple(stage.name for stage in definition.nodes)
    if last.handoff_to not in names:
        return GiveUpWorkflow(error=_nobody(manager.name, last.handoff_to or "nobody", names))
    return BeginStep(nodes=(definition.node(last.handoff_to),))


_PLANS: dict[WorkflowKind, Plan] = {
    WorkflowKind.SEQUENTIAL: _sequential,
    WorkflowKind.CONCURRENT: _concurrent,
    WorkflowKind.HANDOFF: _handoff,
    WorkflowKind.GROUP_CHAT: _group_chat,
}


def _of_last_step(progress: Progress) -> str:
    return in_one({one.node: one.text for one in progress.outputs if one.step == progress.step})


def _too_many_steps(limits: WorkflowLimits) -> RunError:
    return RunError(
        message=(
            f"the workflow took {limits.max_super_steps} super-steps and has not come to its end;"
            " workflows.max_super_steps raises the limit"
        ),
        type="workflow_steps_exceeded",
        error_class=ErrorClass.QUOTA_EXCEEDED,
    )


def _too_many_iterations(definition: WorkflowDefinition, error_type: str) -> RunError:
    return RunError(
        message=(
            f"the word went round {definition.max_iterations} times and nobody had the last one;"
            f" max_iterations of workflow {definition.name} raises the limit"
        ),
        type=error_type,
        error_class=ErrorClass.QUOTA_EXCEEDED,
    )


def _nobody(node: str, wanted: str, known: Sequence[str]) -> RunError:
    return RunError(
        message=f"{node} gave the word to {wanted}; it can give it to: {', '.join(known)}",
        type="invalid_handoff",
        error_class=ErrorClass.INVALID,
    )


def _cannot_wait(request: InputRequest) -> RunError:
    return RunError(
        message=(
            f"node {request.node} asks a person, and without checkpoints the workflow cannot wait for the"
            " answer; workflows.enable_checkpointing is off"
        ),
        type="checkpointing_disabled",
        error_class=ErrorClass.INVALID,
    )
