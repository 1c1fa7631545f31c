"""What may follow in a workflow's run: super-steps, and in them one outcome for each node."""

from typing import Any, assert_never

from domain.commands.workflow import (
    AnswerRequest,
    AskPerson,
    BeginSuperStep,
    FinishSuperStep,
    InvokeNode,
    OpenWorkflow,
    RecordNodeFailure,
    RecordNodeOutput,
    WorkflowCommand,
)
from domain.errors import NotFound, Rejected
from domain.events import workflow as w
from domain.ids import RunId
from domain.refusals import OutOfTurn, require
from domain.run import Run, RunStatus
from domain.waiting import InputRequest
from domain.workflow.definition import NodeKind
from domain.workflow.plan import CompleteWorkflow, planned
from domain.workflow.state import OpenStep, WorkflowRun
from domain.workflow.texts import decided_in


class RequestNotFound(NotFound):
    """The run asks nobody this. It may have been answered in an earlier run of the chain."""

    code = "request_not_found"

    def __init__(self, run_id: RunId, request_id: str) -> None:
        super().__init__(f"run {run_id} waits for no answer to {request_id!r}")


class AnswerNotAllowed(Rejected):
    """The question leaves the choice between some answers, and this is none of them."""

    code = "answer_not_allowed"
    field = "answer"


def decide(run: Run, command: WorkflowCommand) -> list[w.WorkflowEvent]:
    if isinstance(command, OpenWorkflow):
        require(run.workflow is None and run.status is RunStatus.QUEUED, run, "it is of a workflow already")
        return [
            w.WorkflowOpened(
                definition=command.definition,
                definition_version=command.definition_version,
                progress=command.progress,
                from_checkpoint=command.from_checkpoint,
                interrupted=command.interrupted,
            )
        ]
    workflow = workflow_of(run)
    require(run.status is RunStatus.RUNNING, run, "it is not running")
    if isinstance(command, BeginSuperStep):
        return _begin(run, workflow, command)
    step = workflow.open_step
    if step is None:
        raise OutOfTurn(f"run {run.id} is between super-steps")
    match command:
        case FinishSuperStep(checkpoint=kept):
            require(not step.left and not step.failed, run, "its super-step is not done")
            checkpoint = f"{run.id}:{step.step}" if kept else None
            return [w.SuperStepCompleted(step=step.step, checkpoint=checkpoint)]
        case InvokeNode() | RecordNodeOutput() | RecordNodeFailure() | AskPerson():
            require(command.node in step.left, run, f"node {command.node!r} is not to be run now")
            return [_of_node(run, workflow, step, command)]
        case _:
            assert_never(command)


def workflow_of(run: Run) -> WorkflowRun:
    """Raise OutOfTurn where the run is of no workflow."""
    if run.workflow is None:
        raise OutOfTurn(f"run {run.id} is of no workflow")
    return run.workflow


def _begin(run: Run, workflow: WorkflowRun, command: BeginSuperStep) -> list[w.WorkflowEvent]:
    require(workflow.open_step is None, run, "a super-step is under way")
    require(not workflow.progress.pending, run, "people have not answered")
    require(bool(command.nodes), run, "a super-step has nodes")
    return [w.SuperStepStarted(step=workflow.progress.step + 1, nodes=command.nodes)]


NodeCommand = InvokeNode | RecordNodeOutput | RecordNodeFailure | AskPerson


def _of_node(run: Run, workflow: WorkflowRun, step: OpenStep, command: NodeCommand) -> w.WorkflowEvent:
    node, attempt = workflow.definition.node(command.node), step.attempts.get(command.node, 0)
    if isinstance(command, InvokeNode):
        return w.NodeInvoked(
            step=step.step,
            node=node.name,
            kind=node.kind,
            attempt=attempt + 1,
            call_key=command.call_key,
        )
    require(attempt > 0, run, f"node {node.name!r} was never invoked")
    match command:
        case AskPerson(prompt=prompt):
            require(node.kind is NodeKind.PERSON, run, f"node {node.name!r} is no person")
            return w.InputRequested(
                step=step.step, request=_request(run, step, node.answers, command, prompt)
            )
        case RecordNodeFailure(error=error, retry_in_ms=retry_in_ms, duration_ms=duration_ms):
            return w.NodeFailed(
                step=step.step,
                node=node.name,
                attempt=attempt,
                error=error.message,
                error_type=error.type,
                error_class=error.error_class,
                retry_in_ms=retry_in_ms,
                duration_ms=duration_ms,
            )
        case RecordNodeOutput():
            return w.NodeCompleted(output=_output(workflow, step, command), duration_ms=command.duration_ms)
        case _:
            assert_never(command)


def _output(workflow: WorkflowRun, step: OpenStep, command: RecordNodeOutput) -> w.NodeOutput:
    node = workflow.definition.node(command.node)
    handoff_to, done, text = command.handoff_to, command.done, command.text
    if node.kind is not NodeKind.FUNCTION or (handoff_to is None and not done):
        text, handoff_to, done = decided_in(workflow.definition, node, command.text)
    return w.NodeOutput(step=step.step, node=node.name, text=text, handoff_to=handoff_to, done=done)


def _request(
    run: Run, step: OpenStep, answers: tuple[str, ...], command: AskPerson, prompt: str
) -> InputRequest:
    schema: dict[str, Any] | None = {"type": "string", "enum": list(answers)} if answers else None
    request_id = f"{run.chain_root}:{step.step}:{command.node}"
    return InputRequest(id=request_id, node=command.node, prompt=prompt, schema=schema)


def answer_of(run: Run, workflow: WorkflowRun) -> str:
    """The answer of a workflow that has come to its end. Raise OutOfTurn where it has not."""
    progress = workflow.progress
    done = planned(workflow.definition, progress, run.given)
    if workflow.open_step is not None or progress.pending or not isinstance(done, CompleteWorkflow):
        raise OutOfTurn(f"run {run.id} cannot do that: its workflow is not done")
    return done.answer


def answer(run: Run, command: AnswerRequest) -> w.InputAnswered:
    """What follows a run's end when a person has answered. Raise RequestNotFound or AnswerNotAllowed."""
    workflow = workflow_of(run)
    asked = [one for one in workflow.progress.pending if one.id == command.request_id]
    if not asked:
        raise RequestNotFound(run.id, command.request_id)
    [request] = asked
    allowed = workflow.definition.node(request.node).answers
    if allowed and command.answer not in allowed:
        raise AnswerNotAllowed(f"the answer must be one of: {', '.join(allowed)}")
    return w.InputAnswered(request_id=request.id, node=request.node, answer=command.answer)
