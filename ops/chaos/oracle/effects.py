"""What tools did and what models were asked is what the log allowed, and no more than once."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from uuid import UUID

from domain.events import ToolEffect, ToolFailed, ToolFailure, ToolInvoking, ToolReturned
from ops.chaos.evidence import Body, Evidence, History, Row
from ops.chaos.received import Violation

_DANGEROUS = (ToolEffect.DESTRUCTIVE, ToolEffect.EXTERNAL)
_BODY_SLACK_S = 0.005
"""Two clocks are read: the tool's and Postgres', which are one. The reading takes a moment."""
_CALL_SLACK_S = 0.3
"""A request that was given up may still be on its way to the wall, which may be busy."""


def bodies(evidence: Evidence) -> Iterator[Violation]:
    """A body begins after its call is on record and before its run is over, and once (EVENT-2, EVENT-3)."""
    runs = evidence.runs
    begun = [body for body in evidence.bodies if body.what == "began"]
    for body in begun:
        run = runs.get(body.run_id)
        if run is None:
            yield _of(body, "its run is not in the log")
        else:
            yield from _allowed(body, run)
    for (run_id, call_id), times in Counter((body.run_id, body.call_id) for body in begun).items():
        if times > 1:
            yield Violation(rule="bodies", what=f"call {call_id} had {times} bodies", run_id=run_id)


def keys(evidence: Evidence) -> Iterator[Violation]:
    """Over all runs that continue one another, a call that must not be repeated has one body (CONT-3)."""
    runs = evidence.runs
    by_key: dict[str, list[Body]] = defaultdict(list)
    for body in evidence.bodies:
        if body.what == "began":
            by_key[body.call_key].append(body)
    for call_key, begun in by_key.items():
        if len(begun) < 2:
            continue
        calls = [call for body in begun if (call := _invoking(runs, body)) is not None]
        if any(call.effect in _DANGEROUS and not call.safe_to_repeat for call in calls):
            times = ", ".join(f"run {body.run_id} at {body.at:.3f}" for body in begun)
            what = f"{begun[0].tool} {begun[0].order} ({call_key}) had {len(begun)} bodies: {times}"
            yield Violation(rule="keys", what=what, run_id=begun[0].run_id)


def results(evidence: Evidence) -> Iterator[Violation]:
    """A result on record is one that a body came to, in that run."""
    came_to_an_end = {(body.run_id, body.call_id) for body in evidence.bodies if body.what == "ended"}
    for run in evidence.runs.values():
        for row in run.all(ToolReturned, ToolFailed):
            event = row.event
            assert isinstance(event, ToolReturned | ToolFailed)
            if isinstance(event, ToolFailed) and event.failure is not ToolFailure.RAISED:
                continue
            if (run.run_id, event.call_id) not in came_to_an_end:
                what = f"call {event.call_id} of {event.tool} has a result that no body came to"
                yield Violation(rule="results", what=what, run_id=run.run_id)


def model_calls(evidence: Evidence) -> Iterator[Violation]:
    """A host calls a model for a run of its own that is not over: a zombie calls none (EVENT-3)."""
    by_plan: dict[int, list[History]] = defaultdict(list)
    for run in evidence.runs.values():
        by_plan[run.plan].append(run)
    for call in evidence.calls:
        lives = [_life(run) for run in by_plan[call.plan] if _caller(run, evidence) == call.caller]
        if not any(began <= call.at <= over + _CALL_SLACK_S for began, over in lives):
            what = (
                f"{call.caller} asked {call.model} for step {call.step} of plan {call.plan} at {call.at:.3f},"
                f" outside of the lives of its runs {lives}"
            )
            yield Violation(rule="model calls", what=what)


def _allowed(body: Body, run: History) -> Iterator[Violation]:
    invoking = _row_of(run, body.call_id)
    if invoking is None:
        yield _of(body, "its call is not on record")
    elif body.at < invoking.at.timestamp() - _BODY_SLACK_S:
        yield _of(body, f"it began at {body.at:.3f}, before its call was on record ({invoking.at})")
    if run.end and body.at > run.end.at.timestamp() + _BODY_SLACK_S:
        yield _of(body, f"it began at {body.at:.3f}, after the run's end ({run.end.at})")


def _row_of(run: History, call_id: str) -> Row | None:
    return next((row for row in run.all(ToolInvoking) if row.event.call_id == call_id), None)  # type: ignore[attr-defined]


def _invoking(runs: dict[UUID, History], body: Body) -> ToolInvoking | None:
    row = _row_of(runs[body.run_id], body.call_id) if body.run_id in runs else None
    return row.event if row and isinstance(row.event, ToolInvoking) else None


def _life(run: History) -> tuple[float, float]:
    began = run.started.at.timestamp() if run.started else float("inf")
    return began, run.end.at.timestamp() if run.end else float("inf")


def _caller(run: History, evidence: Evidence) -> str | None:
    return evidence.callers.get(run.pid) if run.pid else None


def _of(body: Body, what: str) -> Violation:
    return Violation(
        rule="bodies", what=f"body of {body.tool} {body.order} ({body.call_id}): {what}", run_id=body.run_id
    )
