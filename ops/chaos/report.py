"""What a trial came to, for people: a table, and each violation with its evidence."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from domain.events import (
    RunAwaitingApproval,
    RunCancelled,
    RunCompleted,
    RunContinuationBlocked,
    RunContinued,
    RunFailed,
)
from ops.chaos.evidence import Evidence, History
from ops.chaos.oracle.kills import Verdict
from ops.chaos.received import Violation
from ops.chaos.trial import Outcome

_SHOWN = 5
"""Of each rule."""
_LONGEST = 2000


def show(outcome: Outcome, console: Console) -> None:
    """Print it all. Nothing is left out but violations beyond the first few."""
    console.print(_summary(outcome))
    told: set[UUID] = set()
    for rule, violations in _by_rule(outcome.violations):
        for violation in violations[:_SHOWN]:
            console.print(f"[bold red]{rule}[/]: {_shortened(violation.what)}")
            run = outcome.evidence.runs.get(violation.run_id) if violation.run_id else None
            if run is not None and run.run_id not in told:
                told.add(run.run_id)
                console.print(_story(run, outcome.evidence))
        if len(violations) > _SHOWN:
            console.print(f"... and {len(violations) - _SHOWN} more of {rule}")


def _by_rule(violations: Iterable[Violation]) -> Iterator[tuple[str, list[Violation]]]:
    for rule, found in groupby(sorted(violations, key=lambda each: each.rule), lambda each: each.rule):
        yield rule, list(found)


def _shortened(what: str) -> str:
    """The end of it: there a traceback says what happened."""
    return escape(what if len(what) <= _LONGEST else f"... {what[-_LONGEST:]}")


def _summary(outcome: Outcome) -> Table:
    options, evidence = outcome.options, outcome.evidence
    title = f"seed {options.seed}: {options.seconds:g} s, {options.hosts} hosts"
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_row("submissions", str(len(evidence.submissions)))
    table.add_row("runs", str(len(evidence.runs)))
    for name, count in sorted(_ends(evidence).items()):
        table.add_row(f"  {name}", str(count))
    table.add_row("events", str(evidence.events))
    table.add_row("events that clients were told", str(sum(map(len, evidence.received.frames.values()))))
    table.add_row("tool bodies", str(sum(body.what == "began" for body in evidence.bodies)))
    table.add_row("model calls", str(len(evidence.calls)))
    for kind, count in sorted(evidence.received.statuses.items()):
        table.add_row(f"  {kind}", str(count))
    table.add_row("faults", str(outcome.injected.total()))
    for fault, count in sorted(outcome.injected.items()):
        table.add_row(f"  {fault}", str(count))
    table.add_row("settled within", f"{outcome.settled_s:.1f} s")
    rules = Counter(violation.rule for violation in outcome.violations)
    table.add_row("violations", str(rules.total()), style="bold red" if rules else "bold green")
    for rule, count in sorted(rules.items()):
        table.add_row(f"  {rule}", str(count), style="red")
    return table


def _ends(evidence: Evidence) -> Counter[str]:
    found: Counter[str] = Counter()
    for run in evidence.runs.values():
        match run.end and run.end.event:
            case None:
                found["open"] += 1
            case RunCompleted():
                found["completed"] += 1
            case RunCancelled():
                found["cancelled"] += 1
            case RunAwaitingApproval():
                found["awaited an approval"] += 1
            case RunFailed(error_type=why):
                found[f"failed, {why}"] += 1
        found["continued"] += run.first(RunContinued) is not None
        found["continuation blocked"] += run.first(RunContinuationBlocked) is not None
    return found


def _story(run: History, evidence: Evidence) -> Table:
    """The run's events and its tools' bodies, in the order of time."""
    table = Table(title=f"run {run.run_id}, host {evidence.callers.get(run.pid or 0)}", title_justify="left")
    for column in ("at", "event", "by", "what"):
        table.add_column(column, overflow="fold")
    told: list[tuple[float, str, str, str]] = []
    for row in run.rows:
        name = f"{row.sequence} {type(row.event).__name__}"
        told.append((row.at.timestamp(), name, str(row.writer)[:8], repr(row.event)[:200]))
    for body in evidence.bodies:
        if body.run_id == run.run_id:
            what = f"{body.tool} {body.order} {body.call_id}"
            told.append((body.at, f"body {body.what}", str(body.pid), what))
    for at, name, by, what in sorted(told):
        table.add_row(_clock(at), name, by, escape(what))
    return table


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S.%f")[:-3]  # noqa: DTZ006


def show_kills(verdicts: Sequence[Verdict], console: Console) -> None:
    """A row for each kill, then what was wrong."""
    table = Table(title="A kill at every await", title_justify="left")
    for column in ("point", "time", "what came of the run"):
        table.add_column(column)
    for column in ("look", "refund", "notify"):
        table.add_column(column, justify="right")
    table.add_column("")
    for verdict in verdicts:
        killed, bodies = verdict.rehearsal, verdict.bodies
        counts = (str(bodies[tool]) for tool in ("look", "refund", "notify"))
        mark = "[bold red]wrong[/]" if verdict.violations else "[green]holds[/]"
        table.add_row(killed.point, str(killed.nth), verdict.outcome, *counts, mark)
    console.print(table)
    told = {violation for verdict in verdicts for violation in verdict.violations}
    for violation in sorted(told, key=str):
        run = f" (run {violation.run_id})" if violation.run_id else ""
        console.print(f"[bold red]{violation.rule}[/]: {_shortened(violation.what)}{run}")
