"""Runs below other runs, as those see them: what is asked of a child, and what it came to."""

import asyncio
from typing import Any, Protocol

import msgspec

from app.supervision.live_run import LiveRun
from domain.errors import Conflict
from domain.failure import RunError
from domain.ids import RunId
from domain.messages import Message
from domain.run import RunStatus


class ChildAsk(msgspec.Struct, frozen=True, kw_only=True):
    """What a run wants of another agent. `cause`: the tool call, or the node, whose result it will be."""

    agent: str
    messages: tuple[Message, ...]
    parameters: dict[str, Any] = {}
    cause: str
    in_place_of: RunId | None = None
    """A run that was interrupted at the same, and is gone on from: what it had done is not done again."""


class ChildOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the child came to. Without an error there is an answer."""

    run_id: RunId
    status: RunStatus
    answer: str = ""
    error: RunError | None = None


class ChildRefused(Conflict):
    """A limit of the tree keeps the child from starting (BUDGET-2). Raise the setting that `error` names."""

    code = "child_refused"

    def __init__(self, error: RunError) -> None:
        super().__init__(error.message)
        self.error = error


class ChildFinished(asyncio.CancelledError):
    """The parent was cancelled, but the child had its answer by then. Record it, then let this propagate."""

    def __init__(self, outcome: ChildOutcome) -> None:
        super().__init__("the child finished while its parent was being cancelled")
        self.outcome = outcome


class RunsChildren(Protocol):
    """The one door to child runs."""

    async def run(self, parent: LiveRun, ask: ChildAsk) -> ChildOutcome:
        """Open the child on this host and wait for its end. Never raises for the child's own failure.

        Raise ChildRefused, AgentNotFound, UnusableAgent or BadParameter; then there is no child. Cancelled,
        it ends the child first (CANCEL-3): ChildFinished if that had its answer, else a bare CancelledError.
        """
        ...
