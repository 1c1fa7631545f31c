"""What was left uncertain is decided, or somebody's to decide: interrupted runs, their calls and keys."""

from collections.abc import Iterator

from domain.continuation import uncertain_calls
from domain.events import (
    ContinuationBlock,
    IdempotencyKeyReserved,
    RunContinuationBlocked,
    RunContinued,
    ToolResolved,
)
from domain.idempotency import ChainState, state_of
from ops.chaos.evidence import Evidence, History
from ops.chaos.received import Violation


def continuations(evidence: Evidence) -> Iterator[Violation]:
    """A run that was orphaned is continued or says why not; both runs name each other (CONT-3, CONT-5)."""
    for run in evidence.runs.values():
        marks = list(run.all(RunContinued, RunContinuationBlocked))
        if run.orphaned and not marks:
            yield _of(run, "it was orphaned, and is neither continued nor does it say why not")
        for mark in marks:
            if isinstance(mark.event, RunContinued):
                other = evidence.runs.get(mark.event.by)
                if other is None or other.created.continued_from_run_id != run.run_id:
                    yield _of(run, f"run {mark.event.by} does not continue it, as it says")
        if (before := run.created.continued_from_run_id) is not None:
            named = evidence.runs[before].first(RunContinued) if before in evidence.runs else None
            if named is None or named.event.by != run.run_id:  # type: ignore[attr-defined]
                yield _of(run, f"run {before}, which it continues, does not name it")


def resolutions(evidence: Evidence) -> Iterator[Violation]:
    """What an operator said is on record as it was said, and the run is no longer held up by it (CONT-3)."""
    for told in evidence.received.resolved:
        run = evidence.runs.get(told.run_id)
        found = [row.event for row in run.all(ToolResolved)] if run else []
        said = ToolResolved(call_id=told.call_id, tool="", output=told.output, failed=told.failed)
        if not any(_says_the_same(event, said) for event in found if isinstance(event, ToolResolved)):
            what = f"call {told.call_id} was resolved, and the log does not say so"
            yield Violation(rule="acknowledged", what=what, run_id=told.run_id)
        elif run and _doubted(run) and not uncertain_calls(run.folded):
            yield _of(run, "it is not continued for the doubt about a call that was resolved")


def cancels(evidence: Evidence) -> Iterator[Violation]:
    """Nobody goes on with a run whose cancel was accepted, whatever became of its host (CANCEL-2)."""
    for run_id in evidence.received.cancels:
        run = evidence.runs.get(run_id)
        if run is not None and run.first(RunContinued):
            yield _of(run, "it was continued although its cancel had been accepted")


def settled(evidence: Evidence) -> Iterator[Violation]:
    """A key is answered or free again, unless nobody knows whether it may be (IDEM-5)."""
    for stream_id, rows in evidence.streams.items():
        reserved = rows[-1].event
        if not isinstance(reserved, IdempotencyKeyReserved):
            continue
        chain = [run.folded for run in evidence.chain_from(reserved.run_id)]
        if not chain or state_of(chain, continues=True) is not ChainState.UNCERTAIN:
            what = f"key {reserved.key} is still in progress, with run {reserved.run_id}"
            yield Violation(rule="keys settled", what=what, run_id=stream_id)


def _doubted(run: History) -> bool:
    """Whether the last word is that it is not continued because of a call of its own."""
    marks = [row.event for row in run.all(RunContinued, RunContinuationBlocked)]
    last = marks[-1] if marks else None
    doubted = isinstance(last, RunContinuationBlocked) and last.cause is ContinuationBlock.OUTCOME_UNKNOWN
    return doubted and str(run.run_id) in last.remedy  # type: ignore[union-attr]


def _says_the_same(event: ToolResolved, told: ToolResolved) -> bool:
    return (event.call_id, event.output, event.failed) == (told.call_id, told.output, told.failed)


def _of(run: History, what: str) -> Violation:
    return Violation(rule="outcomes", what=what, run_id=run.run_id)
