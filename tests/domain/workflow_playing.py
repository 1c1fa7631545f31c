"""Plays a workflow without a host: asks the plan what comes next, and its nodes answer at once."""

from collections.abc import Callable, Mapping
from uuid import UUID

import msgspec

from domain.commands import (
    AnswerRequest,
    AwaitInput,
    CompleteRun,
    CreateRun,
    FailRun,
    NoteContinued,
    RunCommand,
    StartRun,
)
from domain.commands.workflow import (
    AskPerson,
    BeginSuperStep,
    FinishSuperStep,
    InvokeNode,
    OpenWorkflow,
    RecordNodeOutput,
)
from domain.decide import decide
from domain.events import RunEvent, RunKind
from domain.events.workflow import InputAnswered, NodeOutput, Progress
from domain.evolve import evolve, fold
from domain.ids import RunId
from domain.messages import UserMessage
from domain.run import Run, RunStatus
from domain.workflow.definition import NodeKind, WorkflowDefinition, WorkflowNode
from domain.workflow.plan import (
    BeginStep,
    CompleteWorkflow,
    FinishStep,
    GiveUpWorkflow,
    RunNodes,
    WaitForPeople,
    WorkflowLimits,
    next_action,
)
from domain.workflow.state import WorkflowRun, answered
from domain.workflow.texts import text_for

Say = Callable[[str, str, Mapping[str, str]], str]
"""What a node says: its name, the text that it is given, and the outputs so far by node."""

GIVEN = "the question"


class Player:
    """One run of a workflow. `ran` are the nodes that did something here, with what they were given."""

    def __init__(
        self,
        definition: WorkflowDefinition,
        say: Say,
        *,
        number: int = 1,
        progress: Progress | None = None,
        limits: WorkflowLimits | None = None,
        continues: Run | None = None,
    ) -> None:
        self._say = say
        self._limits = limits or WorkflowLimits()
        self.run = Run(id=RunId(UUID(int=number)))
        self.events: list[RunEvent] = []
        self.ran: list[tuple[str, str]] = []
        self.tell(
            CreateRun(
                tenant="acme",
                kind=RunKind.WORKFLOW,
                agent=definition.name,
                input=(UserMessage(content=GIVEN),),
                continued_from_run_id=continues.id if continues else None,
                chain_root_run_id=continues.chain_root if continues else None,
            )
        )
        self.tell(OpenWorkflow(definition=definition, progress=progress or Progress()))
        self.tell(StartRun(host="host-1"))

    @property
    def workflow(self) -> WorkflowRun:
        assert self.run.workflow is not None
        return self.run.workflow

    def tell(self, command: RunCommand) -> None:
        for event in decide(self.run, command):
            self.events.append(event)
            self.run = evolve(self.run, event)

    def step(self) -> bool:
        """Do the next thing. Return whether there is another."""
        match next_action(self.workflow, self.run.given, self._limits):
            case BeginStep(nodes=nodes):
                self.tell(BeginSuperStep(nodes=tuple(node.name for node in nodes)))
            case RunNodes(nodes=nodes):
                self._perform(nodes[0])
            case FinishStep():
                self.tell(FinishSuperStep(checkpoint=self._limits.checkpointing))
            case WaitForPeople(requests=requests):
                self.tell(AwaitInput(requests=requests))
            case CompleteWorkflow():
                self.tell(CompleteRun())
            case GiveUpWorkflow(error=error):
                self.tell(FailRun(error=error))
        return not self.run.status.ended

    def play(self) -> "Player":
        """To the run's end."""
        while self.step():
            pass
        return self

    def answer(self, text: str, request: int = 0) -> "Player":
        """A person's answer, and the run that it opens."""
        asked = self.workflow.progress.pending[request]
        [said] = decide(self.run, AnswerRequest(request_id=asked.id, answer=text))
        assert isinstance(said, InputAnswered)
        output = NodeOutput(step=self.workflow.progress.step, node=said.node, text=said.answer)
        progress = answered(self.workflow.progress, asked, output)
        after = self._next(progress)
        self.tell(NoteContinued(by=after.run.id))
        return after

    def crashed_after(self, events: int) -> "Player":
        """The run that resumes this one, had its host been gone after so many of its events."""
        run = fold(self.run.id, self.events[:events])
        assert run.workflow is not None
        checkpoints = run.workflow.checkpoints
        begun_at = self.events[1].progress  # type: ignore[union-attr]
        return self._next(checkpoints[-1].progress if checkpoints else begun_at)

    def _next(self, progress: Progress) -> "Player":
        return Player(
            self.workflow.definition,
            self._say,
            number=self.run.id.int + 1,
            progress=progress,
            limits=self._limits,
            continues=self.run,
        )

    def _perform(self, node: WorkflowNode) -> None:
        workflow = self.workflow
        self.tell(InvokeNode(node=node.name, call_key="k"))
        outputs = workflow.progress.outputs
        text = text_for(workflow.definition, node, self.run.given, outputs)
        self.ran.append((node.name, text))
        if node.kind is NodeKind.PERSON:
            self.tell(AskPerson(node=node.name, prompt=text))
        else:
            said = self._say(node.name, text, {one.node: one.text for one in outputs})
            self.tell(RecordNodeOutput(node=node.name, text=said))

    @property
    def answered_with(self) -> str:
        """The run's answer."""
        assert self.run.status is RunStatus.COMPLETED, self.run.error
        return str(msgspec.structs.asdict(self.events[-1])["answer"])
