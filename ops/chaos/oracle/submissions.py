"""What was submitted once was done once."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from domain.events import RunCompleted
from ops.chaos.evidence import Evidence, History
from ops.chaos.received import Violation
from ops.chaos.workload import Way


def once(evidence: Evidence) -> Iterator[Violation]:
    """A submission is one run, and those that continue it (IDEM-4).

    A key is free again after a failure, but where what it was answered is that the run was accepted.
    """
    roots: dict[int, list[History]] = defaultdict(list)
    for run in evidence.runs.values():
        if run.created.continued_from_run_id is None:
            roots[run.plan].append(run)
    for number, runs in roots.items():
        runs.sort(key=lambda run: run.rows[0].at)
        submission = evidence.submissions.get(number)
        keyed = submission is not None and submission.way is Way.KEYED
        for earlier, later in pairwise(runs):
            last = evidence.chain_from(earlier.run_id)[-1]
            freed = last.end is not None and not isinstance(last.end.event, RunCompleted)
            if not keyed or not freed or last.end is None or last.end.at > later.rows[0].at:
                what = f"submission {number} became this run although it was run {earlier.run_id} already"
                yield Violation(rule="once", what=what, run_id=later.run_id)


def answers(evidence: Evidence) -> Iterator[Violation]:
    """A key's success is the same answer for ever, to the byte."""
    first: dict[str, bytes] = {}
    for answer in evidence.received.answers:
        if answer.key is None or answer.status not in (200, 202):
            continue
        if first.setdefault(answer.key, answer.body) != answer.body:
            yield Violation(
                rule="answers", what=f"{answer.key} was answered twice differently", run_id=answer.run_id
            )
