"""The runs of one conversation go one after the other."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from domain.events import SessionTurnAdded
from ops.chaos.evidence import Evidence, History
from ops.chaos.received import Violation


def apart(evidence: Evidence) -> Iterator[Violation]:
    """A run begins after the end of the one that began before it in its session, on whichever hosts.

    Both are told by positions in the log: whoever begins has read that end.
    """
    by_session: dict[str, list[History]] = defaultdict(list)
    for run in evidence.runs.values():
        if run.created.session_id is not None and run.started is not None:
            by_session[run.created.session_id].append(run)
    for runs in by_session.values():
        runs.sort(key=_begun_at)
        for earlier, later in pairwise(runs):
            if earlier.end is None or earlier.end.recorded.position > _begun_at(later):
                what = f"it began before run {earlier.run_id} of its session was over"
                yield Violation(rule="sessions", what=what, run_id=later.run_id)


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
        expected = int(run.created.session_id is not None and not run.failed)
        if added[run.run_id] != expected and (run.started or added[run.run_id]):
            what = f"its conversation has its turn {added[run.run_id]} times and not {expected}"
            yield Violation(rule="sessions", what=what, run_id=run.run_id)


def _begun_at(run: History) -> int:
    assert run.started is not None
    return run.started.recorded.position
