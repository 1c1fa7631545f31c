"""Where a run begins that goes on from another one of its workflow: at a checkpoint or an answer (WF)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from domain.commands import AnswerRequest, CreateRun, NoteContinued
from domain.commands.workflow import OpenWorkflow
from domain.continuation import ORPHANED, PastRun
from domain.decide import decide
from domain.errors import Conflict, NotFound, Rejected
from domain.events import ChildRunStarted, RunEvent, RunKind
from domain.events.workflow import NodeOutput, Progress, SuperStepCompleted, WorkflowOpened
from domain.evolve import evolve, fold
from domain.ids import RunId
from domain.queueing import QueueSpec
from domain.refusals import AlreadyContinued, RunNotEnded, WaitIsOver
from domain.run import Run, RunStatus
from domain.waiting import InputRequest
from domain.workflow.decide import RequestNotFound, workflow_of
from domain.workflow.state import Checkpoint, WorkflowRun, answered
from domain.workflow.texts import decided_in

INTERRUPTED = "interrupted"
"""The error type of a run whose worker was gone."""


class NotAWorkflow(Rejected):
    """The run is of an agent. Its session goes on with another run; there are no checkpoints."""

    code = "not_a_workflow"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"run {run_id} is not of a workflow")


class NothingToResume(Conflict):
    """The run came to its end, or waits for a person. The message says what can be done instead."""

    code = "nothing_to_resume"


class CheckpointNotFound(NotFound):
    """Neither the run nor those that it continues have this checkpoint. Take one of those that are listed."""

    code = "checkpoint_not_found"

    def __init__(self, run_id: RunId, checkpoint: str) -> None:
        super().__init__(f"run {run_id} has no checkpoint {checkpoint!r}")


class GoingOn(msgspec.Struct, frozen=True, kw_only=True):
    """Another run, and what the one that it goes on from says of it afterwards."""

    run_id: RunId
    create: CreateRun
    open: OpenWorkflow
    afterwards: tuple[RunEvent, ...]


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever opens the next run brings along."""

    run_id: RunId
    streaming: bool = False
    queue: QueueSpec | None = None


def resumed(chain: Sequence[PastRun], checkpoint: str | None, after: Next) -> GoingOn:
    """The run that resumes the last one of the chain, from its latest checkpoint or the one that is named.

    Raise NotAWorkflow, RunNotEnded, AlreadyContinued, WaitIsOver, NothingToResume or CheckpointNotFound.
    """
    run = fold(chain[-1].run_id, chain[-1].events)
    workflow = resumable(run)
    if checkpoint is None:
        latest = workflow.checkpoints[-1] if workflow.checkpoints else None
        progress = latest.progress if latest else begun_at(chain[-1])
        name = latest.id if latest else workflow.from_checkpoint
        cut_off = _cut_off(run.id, chain[-1].events)
    else:
        named = next((one for one in checkpoints_of(chain) if one.id == checkpoint), None)
        if named is None:
            raise CheckpointNotFound(run.id, checkpoint)
        progress, name, cut_off = named.progress, named.id, {}
    return _going_on(run, workflow, progress, name, after, cut_off=cut_off)


def resumable(run: Run) -> WorkflowRun:
    """The run's workflow, if the run can be resumed. Raise what `resumed` raises where it cannot."""
    workflow = of_workflow(run)
    if not run.status.ended:
        raise RunNotEnded(run.id)
    if run.continued_by is not None:
        raise AlreadyContinued(run.id, run.continued_by)
    if run.wait_over is not None:
        raise WaitIsOver(run.id)
    if run.status is RunStatus.AWAITING_INPUT:
        told = f"run {run.id} waits for an answer: POST /api/workflows/runs/{run.id}/respond"
        raise NothingToResume(told)
    if run.status is RunStatus.COMPLETED:
        raise NothingToResume(f"run {run.id} has its answer; run the workflow again for another one")
    return workflow


def responded(past: PastRun, request_id: str | None, answer: str, after: Next) -> GoingOn:
    """The run that goes on with a person's answer. Without an id it is the answer to the only question.

    Raise NotAWorkflow, AlreadyContinued, WaitIsOver, RequestNotFound or AnswerNotAllowed.
    """
    run = fold(past.run_id, past.events)
    workflow = of_workflow(run)
    pending = open_requests(run)
    if run.continued_by is not None:
        raise AlreadyContinued(run.id, run.continued_by)
    if run.wait_over is not None:
        raise WaitIsOver(run.id)
    if request_id is None and len(pending) != 1:
        asked = ", ".join(request.id for request in pending) or "none"
        raise RequestNotFound(run.id, f"(request_id was left out; there are: {asked})")
    wanted = request_id or pending[0].id
    if not any(request.id == wanted for request in pending):
        raise RequestNotFound(run.id, wanted)
    [said] = decide(run, AnswerRequest(request_id=wanted, answer=answer))
    request = next(one for one in pending if one.id == wanted)
    output = NodeOutput(step=workflow.progress.step, node=request.node, text=answer)
    progress = answered(workflow.progress, request, _decided(workflow, output))
    latest = workflow.checkpoints[-1].id if workflow.checkpoints else workflow.from_checkpoint
    return _going_on(run, workflow, progress, latest, after, said=(said,))


def checkpoints_of(chain: Sequence[PastRun]) -> tuple[Checkpoint, ...]:
    """Every checkpoint of these runs, the oldest first."""
    runs = (fold(past.run_id, past.events) for past in chain)
    return tuple(one for run in runs if run.workflow for one in run.workflow.checkpoints)


def begun_at(past: PastRun) -> Progress:
    """Where the run began: what was finished in the runs before it."""
    return workflow_of(fold(past.run_id, past.events[:2])).progress


def was_interrupted(run: Run) -> bool:
    """Whether the run was closed because its host or worker was gone."""
    return run.status is RunStatus.FAILED and run.failed_as in (INTERRUPTED, ORPHANED)


def of_workflow(run: Run) -> WorkflowRun:
    """Raise NotAWorkflow."""
    if run.workflow is None:
        raise NotAWorkflow(run.id)
    return run.workflow


def open_requests(run: Run) -> tuple[InputRequest, ...]:
    """What people are asked by this run and nobody has answered (WF-3)."""
    waits = run.status is RunStatus.AWAITING_INPUT and run.continued_by is None and run.wait_over is None
    return run.workflow.progress.pending if run.workflow and waits else ()


def _cut_off(run_id: RunId, events: Sequence[RunEvent]) -> dict[str, RunId]:
    """The child runs that the nodes of the super-step under way were at, here or in the run before."""
    run, at = Run(id=run_id), dict[str, RunId]()
    for event in events:
        run = evolve(run, event)
        if isinstance(event, WorkflowOpened | SuperStepCompleted) and run.workflow is not None:
            at = dict(run.workflow.interrupted)
        elif isinstance(event, ChildRunStarted):
            at[event.cause] = event.run_id
    return at


def _decided(workflow: WorkflowRun, output: NodeOutput) -> NodeOutput:
    node = workflow.definition.node(output.node)
    words = decided_in(workflow.definition, node, output.text)
    return msgspec.structs.replace(output, text=words.text, handoff_to=words.handoff_to, done=words.done)


def _going_on(
    run: Run,
    workflow: WorkflowRun,
    progress: Progress,
    checkpoint: str | None,
    after: Next,
    *,
    said: tuple[RunEvent, ...] = (),
    cut_off: Mapping[str, RunId] = MappingProxyType({}),
) -> GoingOn:
    created = run.created
    if created is None:
        raise NotAWorkflow(run.id)
    create = CreateRun(
        tenant=created.tenant,
        kind=RunKind.WORKFLOW,
        agent=created.agent,
        input=created.input,
        parameters=created.parameters,
        session_id=created.session_id,
        continued_from_run_id=run.id,
        chain_root_run_id=run.chain_root,
        streaming=after.streaming,
        origin=created.origin,
        queue=after.queue,
    )
    opened = OpenWorkflow(
        definition=workflow.definition,
        definition_version=workflow.definition_version,
        progress=progress,
        from_checkpoint=checkpoint,
        interrupted=dict(cut_off),
    )
    noted = decide(run, NoteContinued(by=after.run_id))
    return GoingOn(run_id=after.run_id, create=create, open=opened, afterwards=(*said, *noted))
