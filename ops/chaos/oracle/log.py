"""What was acknowledged is in the log, and the log is in order."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec

from app.http.display import frame_data
from domain.events import (
    AfterEnd,
    JobAttemptsExhausted,
    RunAwaitingApproval,
    RunCancelled,
    RunCancelRequested,
    RunCompleted,
    RunContinued,
    RunCreated,
    RunFailed,
)
from domain.ids import RunId
from domain.run import RunStatus
from ops.chaos.evidence import RUN_ENDS, Evidence, History, Row
from ops.chaos.received import Answer, Violation

_DISPLAY_LIMIT = 65536
_BY_ANYBODY = (RunCreated, RunCancelRequested, JobAttemptsExhausted, RunFailed, RunCancelled)
"""What a host may write into a run that another one works on, or before one does."""
_STATUS_OF = {
    RunCompleted: RunStatus.COMPLETED,
    RunFailed: RunStatus.FAILED,
    RunCancelled: RunStatus.CANCELLED,
    RunAwaitingApproval: RunStatus.AWAITING_APPROVAL,
}


def acknowledged(evidence: Evidence) -> Iterator[Violation]:
    """Every event and every end that a client was told is in the log, as it was told (EVENT-7)."""
    for run_id in evidence.received.runs:
        if run_id not in evidence.streams:
            yield _lost(run_id, "the run was told of and is not in the log")
    for run_id, frames in evidence.received.frames.items():
        rows = evidence.streams.get(run_id, ())
        for sequence, frame in frames.items():
            if sequence > len(rows):
                yield _lost(run_id, f"event {sequence} was told and is not in the log: {frame}")
            elif _as_told(run_id, rows[sequence - 1]) != frame:
                yield _lost(run_id, f"event {sequence} is another one in the log than was told: {frame}")
    for answer in evidence.received.answers:
        yield from _answer(answer, evidence)


def streams(evidence: Evidence) -> Iterator[Violation]:
    """Sequences count from 1 without a gap, in the order of the log (EVENT-1, EVENT-5)."""
    for stream_id, rows in evidence.streams.items():
        sequences = [row.sequence for row in rows]
        if sequences != list(range(1, len(rows) + 1)):
            yield Violation(rule="streams", what=f"sequences are not gapless: {sequences}", run_id=stream_id)
        positions = [row.recorded.position for row in rows]
        if positions != sorted(positions):
            yield Violation(rule="streams", what="positions do not rise with sequences", run_id=stream_id)


def writers(evidence: Evidence) -> Iterator[Violation]:
    """A run is worked on by one host; another one may only close it, and then it is closed (EVENT-3)."""
    for run in evidence.runs.values():
        yield from _one_worker(run)
        yield from _one_end(run)


def ended(evidence: Evidence) -> Iterator[Violation]:
    """Every run came to an end, or waits for a person."""
    for run in evidence.runs.values():
        if run.end is None:
            status = "Running" if run.started else "Queued"
            yield Violation(rule="ended", what=f"the run is still {status}", run_id=run.run_id)


def _one_worker(run: History) -> Iterator[Violation]:
    worker = run.started.writer if run.started else None
    for row in run.rows:
        theirs = row.writer != worker
        if theirs and not isinstance(row.event, (*_BY_ANYBODY, *AfterEnd.__args__)):
            what = f"event {row.sequence}, {type(row.event).__name__}, is by {row.writer}, not by {worker}"
            yield Violation(rule="writers", what=what, run_id=run.run_id)


def _one_end(run: History) -> Iterator[Violation]:
    over = False
    for row in run.rows:
        if over and not isinstance(row.event, AfterEnd):
            what = f"event {row.sequence}, {type(row.event).__name__}, follows the run's end"
            yield Violation(rule="writers", what=what, run_id=run.run_id)
        over = over or isinstance(row.event, RUN_ENDS)
    if sum(1 for _ in run.all(RunContinued)) > 1:
        yield Violation(rule="writers", what="two runs continue this one", run_id=run.run_id)


def _answer(answer: Answer, evidence: Evidence) -> Iterator[Violation]:
    """An answer about a run's end says what the log says of it."""
    if answer.run_id not in evidence.runs:
        return
    end = evidence.runs[answer.run_id].end
    told = _record_in(answer)
    if told is None:
        return
    if end is None or told["status"] != _STATUS_OF[type(end.event)]:
        yield _lost(answer.run_id, f"its end was told as {told['status']}, and the log has {end}")
    elif isinstance(end.event, RunCompleted) and told["answer"] != end.event.answer:
        yield _lost(answer.run_id, f"its answer was told as {told['answer']!r}")


def _record_in(answer: Answer) -> dict[str, Any] | None:
    """The run that the answer carries. One that says no more than "try again" carries none."""
    body = msgspec.json.decode(answer.body)
    is_record = answer.status == 200 or body.get("status") == RunStatus.AWAITING_APPROVAL
    told: dict[str, Any] | None = body if is_record else body.get("run")
    return told


def _as_told(run_id: UUID, row: Row) -> object:
    return msgspec.json.decode(frame_data(RunId(run_id), row.recorded, _DISPLAY_LIMIT))


def _lost(run_id: UUID, what: str) -> Violation:
    return Violation(rule="acknowledged", what=what, run_id=run_id)
