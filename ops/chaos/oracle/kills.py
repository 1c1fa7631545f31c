"""What came of each run whose host was killed."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from domain.events import (
    RunCompleted,
    RunContinuationBlocked,
    RunContinued,
    RunFailed,
    ToolInvoking,
    ToolReturned,
)
from ops.chaos.evidence import Evidence, History
from ops.chaos.oracle.audit import audit
from ops.chaos.received import Violation


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """One kill: at a point, when it is passed for the nth time, during the run of a plan."""

    point: str
    nth: int
    plan: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a rehearsal came to."""

    rehearsal: Rehearsal
    outcome: str
    bodies: Counter[str]
    """How many began, by tool."""
    violations: Sequence[Violation]


def verdicts(rehearsed: Sequence[Rehearsal], evidence: Evidence) -> list[Verdict]:
    """One for each rehearsal. A violation that is nobody's is everybody's."""
    found = audit(evidence)
    of_plan: dict[int, list[History]] = {}
    for run in sorted(evidence.runs.values(), key=lambda run: run.rows[0].at):
        of_plan.setdefault(run.plan, []).append(run)
    mine = {run.run_id: run.plan for run in evidence.runs.values()}
    return [
        _verdict(
            rehearsal,
            of_plan.get(rehearsal.plan, []),
            evidence,
            [v for v in found if v.run_id is None or mine.get(v.run_id) == rehearsal.plan],
        )
        for rehearsal in rehearsed
    ]


def _verdict(
    rehearsal: Rehearsal, runs: list[History], evidence: Evidence, found: list[Violation]
) -> Verdict:
    ids = {run.run_id for run in runs}
    bodies = Counter(body.tool for body in evidence.bodies if body.run_id in ids and body.what == "began")
    found += [Violation(rule="kills", what=what, run_id=runs[-1].run_id) for what in _wrong(runs, bodies)]
    outcome = " > ".join(map(_told, runs)) or "no run"
    return Verdict(rehearsal=rehearsal, outcome=outcome, bodies=bodies, violations=found)


def _wrong(runs: list[History], bodies: Counter[str]) -> Iterator[str]:
    """Once is once if the plan was carried out, and at most once if nobody can tell (CONT-2, CONT-3)."""
    if not runs:
        return
    last = runs[-1]
    completed = last.end is not None and isinstance(last.end.event, RunCompleted)
    for tool in ("refund", "notify"):
        if bodies[tool] > 1 or (completed and bodies[tool] != 1):
            yield f"{tool} had {bodies[tool]} bodies"
    if completed and not bodies["look"]:
        yield "look had no body"
    if last.first(RunContinuationBlocked) and not _uncertain(last):
        yield "its continuation is blocked although the outcome of every call is known"


def _uncertain(run: History) -> bool:
    """Whether a call that must not be repeated has begun and has no result."""
    begun = {row.event.call_id for row in run.all(ToolInvoking) if row.event.tool in ("refund", "notify")}  # type: ignore[attr-defined]
    return bool(begun - {row.event.call_id for row in run.all(ToolReturned)})  # type: ignore[attr-defined]


def _told(run: History) -> str:
    told = "open"
    if run.end is not None:
        event = run.end.event
        told = event.error_type if isinstance(event, RunFailed) else type(event).__name__
    blocked, continued = run.first(RunContinuationBlocked), run.first(RunContinued)
    if blocked:
        told += f", blocked: {blocked.event.cause}"  # type: ignore[attr-defined]
    return told + (", continued" if continued else "")
