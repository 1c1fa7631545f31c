"""All checks together, each switched on when the build does what it checks."""

from collections.abc import Callable, Iterator

from app.settings.whole import Settings
from ops.chaos.evidence import Evidence
from ops.chaos.oracle import effects, log, submissions
from ops.chaos.received import Violation
from ops.chaos.settings import acts

Check = Callable[[Evidence], Iterator[Violation]]

_ALWAYS: tuple[Check, ...] = (
    log.acknowledged,
    log.streams,
    log.writers,
    effects.bodies,
    effects.keys,
    effects.results,
    effects.model_calls,
    submissions.once,
    submissions.answers,
    submissions.turns,
)


def audit(evidence: Evidence, settings: Settings) -> list[Violation]:
    """Everything that is wrong, in the order of the rules."""
    checks = list(_ALWAYS)
    if acts(settings, "run_reconciliation"):
        checks.append(log.ended)
    if acts(settings, "run_continuation"):
        checks.append(submissions.continuations)
    found = [*evidence.received.violations]
    found += [Violation(rule="defects", what=what) for what in evidence.defects]
    for check in checks:
        found += check(evidence)
    return found
