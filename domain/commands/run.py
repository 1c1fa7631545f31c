"""What a run as a whole is told: to begin, to wait, to end, and what is noted of it on the way."""

from decimal import Decimal
from typing import Any

from domain.agent import AgentDefinition
from domain.command import Command
from domain.events import RunKind
from domain.failure import RunError
from domain.ids import RunId
from domain.messages import Message
from domain.queueing import QueueSpec
from domain.replay import Replay
from domain.submission import Origin, Overrides
from domain.waiting import AwaitedCall, CallDecision, InputRequest


class CreateRun(Command, frozen=True, kw_only=True):
    tenant: str
    kind: RunKind = RunKind.AGENT
    agent: str
    input: tuple[Message, ...]
    parameters: dict[str, Any] = {}
    session_id: str | None = None
    root_run_id: RunId | None = None
    parent_run_id: RunId | None = None
    depth: int = 0
    continued_from_run_id: RunId | None = None
    streaming: bool = False
    overrides: Overrides | None = None
    origin: Origin | None = None
    queue: QueueSpec | None = None
    chain_root_run_id: RunId | None = None
    replay: Replay | None = None
    decisions: dict[str, CallDecision] = {}


class StartRun(Command, frozen=True, kw_only=True):
    host: str
    definition: AgentDefinition | None = None
    """None for a workflow's run."""
    session_version: int = 0


class NoteChild(Command, frozen=True, kw_only=True):
    """A run below this one is opened in the same append."""

    run_id: RunId
    agent: str
    cause: str


class ReportUsage(Command, frozen=True, kw_only=True):
    """A tool or a node has spent something beyond tokens. An amount of None is unknown, not zero."""

    cause: str
    kind: str
    amount: Decimal | None = None
    currency: str | None = None
    counted: bool = False


class Nudge(Command, frozen=True, kw_only=True):
    """Tell the model what its turn still lacks."""

    missing: str
    message: str


class AwaitApproval(Command, frozen=True, kw_only=True):
    """End the run until somebody has said whether these of its open calls may be made."""

    calls: tuple[AwaitedCall, ...]


class AwaitInput(Command, frozen=True, kw_only=True):
    """End the run until somebody has answered."""

    requests: tuple[InputRequest, ...]


class RequestCancel(Command, frozen=True, kw_only=True):
    reason: str = ""


class CompleteRun(Command, frozen=True, kw_only=True):
    """End the turn with the last reply as its answer."""


class FailRun(Command, frozen=True, kw_only=True):
    error: RunError


class CancelRun(Command, frozen=True, kw_only=True):
    """End the run on request. `descendants`: how many runs below it were ended first (CANCEL-3)."""

    reason: str = ""
    descendants: int = 0


class CloseAbandoned(Command, frozen=True, kw_only=True):
    """End a run that nothing works on any more: as cancelled if that was asked for, else as failed.

    `asked`: the reason of a cancel that was accepted and that its owner did not live to record.
    """

    error: RunError
    asked: str | None = None


class CancelQueuedRun(Command, frozen=True, kw_only=True):
    """End a run that no worker has begun. Refused once one has: then its owner has to be asked."""

    reason: str = ""


class ExhaustAttempts(Command, frozen=True, kw_only=True):
    """Give the run's job up: its last worker is gone, and it may have no other."""

    attempts: int
