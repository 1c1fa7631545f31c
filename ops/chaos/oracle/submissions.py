"""What was submitted once was done once."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from domain.events import RunCompleted, RunContinuationBlocked, RunContinued, RunFailed, SessionTurnAdded
from ops.chaos.evidence import Evidence, History
from ops.chaos.received import Violation


def once(evidence: Evidence) -> Iterator[Violation]:
    """A submission is one run, and those that continue it. A key is free again after failure (IDEM-4)."""
    roots: dict[int, list[History]] = defaultdict(list)
    for run in evidence.runs.values():
        if run.created.continued_from_run_id is None:
            roots[run.plan].append(run)
    for number, runs in roots.items():
        runs.sort(key=lambda run: run.rows[0].at)
        keyed = number in evidence.submissions and evidence.submissions[number].key is not None
        for earlier, later in pairwise(runs):
            last = _last_of_chain(earlier, evidence)
            freed = last.end is not None and not isinstance(last.end.event, RunCompleted)
            if not keyed or not freed or last.end is None or last.end.at > later.rows[0].at:
                what = f"submission {number} became this run although it was run {earlier.run_id} already"
                yield Violation(rule="once", what=what, run_id=later.run_id)


def answers(evidence: Evidence) -> Iterator[Violation]:
    """A key's success is the same answer for ever, to the byte."""
    first: dict[str, bytes] = {}
    for answer in evidence.received.answers:
        if answer.key is None or answer.status != 200:
            continue
        if first.setdefault(answer.key, answer.body) != answer.body:
            yield Violation(
                rule="answers", what=f"{answer.key} was answered twice differently", run_id=answer.run_id
            )


def continuations(evidence: Evidence) -> Iterator[Violation]:
    """A run that was orphaned is continued or says why not; both runs name each other (CONT-3, CONT-5)."""
    for run in evidence.runs.values():
        marks = list(run.all(RunContinued, RunContinuationBlocked))
        orphaned = run.end and isinstance(run.end.event, RunFailed) and run.end.event.error_type == "orphaned"
        if orphaned and not marks:
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


def turns(evidence: Evidence) -> Iterator[Violation]:
    """A turn is in its conversation once if its run did not fail, and else not at all."""
    added: dict[object, int] = defaultdict(int)
    for rows in evidence.streams.values():
        for row in rows:
            if isinstance(row.event, SessionTurnAdded):
                added[row.event.run_id] += 1
    for run in evidence.runs.values():
        if run.end is None:
            continue
        expected = int(run.created.session_id is not None and not isinstance(run.end.event, RunFailed))
        if added[run.run_id] != expected and (run.started or added[run.run_id]):
            yield _of(run, f"its conversation has its turn {added[run.run_id]} times and not {expected}")


def _last_of_chain(run: History, evidence: Evidence) -> History:
    while (mark := run.first(RunContinued)) is not None and mark.event.by in evidence.runs:  # type: ignore[attr-defined]
        run = evidence.runs[mark.event.by]  # type: ignore[attr-defined]
    return run


def _of(run: History, what: str) -> Violation:
    return Violation(rule="submissions", what=what, run_id=run.run_id)
