"""What may be asked of a workflow's run."""

from domain.command import Command
from domain.events.workflow import Progress
from domain.failure import RunError
from domain.ids import RunId
from domain.workflow.definition import WorkflowDefinition


class OpenWorkflow(Command, frozen=True, kw_only=True):
    """Say what the run that was just created is of, and where it begins."""

    definition: WorkflowDefinition
    definition_version: int = 0
    progress: Progress = Progress()
    from_checkpoint: str | None = None
    interrupted: dict[str, RunId] = {}


class BeginSuperStep(Command, frozen=True, kw_only=True):
    nodes: tuple[str, ...]


class InvokeNode(Command, frozen=True, kw_only=True):
    """Put an attempt of the node on record, before it does anything."""

    node: str
    call_key: str


class RecordNodeOutput(Command, frozen=True, kw_only=True):
    """What the node came to. A function decides with its own values, everybody else in the last line."""

    node: str
    text: str
    handoff_to: str | None = None
    done: bool = False
    duration_ms: int = 0


class RecordNodeFailure(Command, frozen=True, kw_only=True):
    node: str
    error: RunError
    retry_in_ms: int | None = None
    duration_ms: int = 0


class AskPerson(Command, frozen=True, kw_only=True):
    """Put the question of a person's node on record."""

    node: str
    prompt: str


class FinishSuperStep(Command, frozen=True, kw_only=True):
    checkpoint: bool = True


class AnswerRequest(Command, frozen=True, kw_only=True):
    """Answer what an ended run has asked a person."""

    request_id: str
    answer: str


WorkflowCommand = (
    OpenWorkflow
    | BeginSuperStep
    | InvokeNode
    | RecordNodeOutput
    | RecordNodeFailure
    | AskPerson
    | FinishSuperStep
)
