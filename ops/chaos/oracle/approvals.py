"""What waits for a person is done if somebody approved of it, and not otherwise (TOOL-2)."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from domain.events import (
    ApprovalDecided,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalWithdrawn,
    RunAwaitingApproval,
    RunContinued,
    RunWaitEnded,
)
from ops.chaos.evidence import Evidence, History, Row
from ops.chaos.received import Violation
from ops.chaos.workload import APPROVED

_EXPIRY_SLACK_S = 30.0
"""The database may be away for a while, and the duty has to find another host then."""
_SETTLED = (ApprovalDecided, ApprovalExpired, ApprovalWithdrawn)


def granted(evidence: Evidence) -> Iterator[Violation]:
    """The body of a call that has to be approved begins in a run that the approval of it opened, or after."""
    runs = evidence.runs
    for body in evidence.bodies:
        if body.what != "began" or body.tool != APPROVED or body.run_id not in runs:
            continue
        decisions = [run.created.decisions for run in _before(runs[body.run_id], evidence)]
        said = next((of_run[body.call_id] for of_run in decisions if body.call_id in of_run), None)
        if said is None or not said.approved:
            what = f"call {body.call_id} of {body.tool} was made, and nobody had approved of it"
            yield Violation(rule="approvals", what=what, run_id=body.run_id)


def settled_once(evidence: Evidence) -> Iterator[Violation]:
    """An approval is settled once, unless its time is not over, and its run's stream says the same of it."""
    latest = max((row.at for rows in evidence.streams.values() for row in rows), default=None)
    waiting = {run.run_id: run for run in evidence.runs.values() if run.first(RunAwaitingApproval)}
    for rows in evidence.streams.values():
        asked = rows[0].event
        if not isinstance(asked, ApprovalRequested):
            continue
        run = waiting.pop(asked.run_id, None)
        if run is None:
            what = "an approval was asked for, and the run does not wait for it"
            yield Violation(rule="approvals", what=what, run_id=asked.run_id)
            continue
        settled = [row for row in rows if isinstance(row.event, _SETTLED)]
        yield from _one_end(run, settled)
        if not settled and latest is not None and _is_overdue(rows[0], asked, latest):
            yield _of(run, "its approval should have expired long ago")
    for run in waiting.values():
        yield _of(run, "it waits for an approval that nobody was asked for")


def decisions(evidence: Evidence) -> Iterator[Violation]:
    """A decision that was acknowledged is the one on record."""
    on_record = {
        row.event.run_id: row.event
        for rows in evidence.streams.values()
        for row in rows
        if isinstance(row.event, ApprovalDecided)
    }
    for told in evidence.received.decided:
        decided = on_record.get(told.run_id)  # type: ignore[call-overload]  # run ids are UUIDs
        if decided is None or any(one.approved != told.approved for one in decided.decisions.values()):
            what = f"it was told that its calls are {'approved' if told.approved else 'rejected'}: {decided}"
            yield Violation(rule="acknowledged", what=what, run_id=told.run_id)


def _one_end(run: History, settled: list[Row]) -> Iterator[Violation]:
    if len(settled) > 1:
        yield _of(run, f"its approval was settled {len(settled)} times")
    opened = next((row.event.opens for row in settled if isinstance(row.event, ApprovalDecided)), None)
    continued = run.first(RunContinued)
    by = continued.event.by if continued else None  # type: ignore[attr-defined]
    if by != opened:
        yield _of(run, f"its approval opened run {opened}, and it says that it goes on in {by}")
    if bool(run.first(RunWaitEnded)) != any(not isinstance(row.event, ApprovalDecided) for row in settled):
        yield _of(run, "its approval and its own stream do not agree on whether it still waits")


def _is_overdue(row: Row, asked: ApprovalRequested, now: datetime) -> bool:
    if asked.expires_after_s is None:
        return False
    return now > row.at + timedelta(seconds=asked.expires_after_s + _EXPIRY_SLACK_S)


def _before(run: History, evidence: Evidence) -> list[History]:
    """The run and those that it continues, the latest first."""
    found, runs = [run], evidence.runs
    while (before := found[-1].created.continued_from_run_id) in runs:
        found.append(runs[before])
    return found


def _of(run: History, what: str) -> Violation:
    return Violation(rule="approvals", what=what, run_id=run.run_id)
