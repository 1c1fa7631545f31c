"""What the clients of a trial were told. The service has to stand by all of it."""

from collections import Counter
from typing import Any
from uuid import UUID

import msgspec


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that was broken, and what shows it."""

    rule: str
    what: str
    run_id: UUID | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer about a run's end."""

    number: int
    status: int
    run_id: UUID
    body: bytes
    key: str | None = None


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """An operator said what came of a call, and was told that this is on record now."""

    run_id: UUID
    call_id: str
    output: str
    failed: bool


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """An operator decided of a run that waited, and was told that this is on record now."""

    run_id: UUID
    approved: bool


class Received:
    """Filled by the clients while the trial goes on."""

    def __init__(self) -> None:
        self.frames: dict[UUID, dict[int, dict[str, Any]]] = {}
        """Of each run, by sequence."""
        self.answers: list[Answer] = []
        self.runs: dict[UUID, int] = {}
        """Runs that somebody was told of, with the number of the plan."""
        self.resolved: list[Resolved] = []
        self.decided: list[Decided] = []
        self.cancels: list[UUID] = []
        """Runs whose cancel was accepted."""
        self.statuses: Counter[str] = Counter()
        self.violations: list[Violation] = []

    def told_of(self, run_id: UUID, number: int) -> None:
        self.runs[run_id] = number

    def frame(self, run_id: UUID, frame: dict[str, Any]) -> None:
        """A numbered frame. Whoever got it before got the same."""
        of_run = self.frames.setdefault(run_id, {})
        known = of_run.setdefault(frame["sequence"], frame)
        if known != frame:
            self.complain("acknowledged", f"event {frame['sequence']} was told in two ways", run_id)

    def status(self, what: str, status: int) -> None:
        """The status of an answer, or why there was none (0: the connection broke, or nothing came)."""
        self.statuses[f"{what} {status or 'no answer'}"] += 1

    def complain(self, rule: str, what: str, run_id: UUID | None = None) -> None:
        self.violations.append(Violation(rule=rule, what=what, run_id=run_id))
