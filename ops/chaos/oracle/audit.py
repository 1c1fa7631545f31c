"""All checks together."""

from collections.abc import Callable, Iterator

from ops.chaos.evidence import Evidence
from ops.chaos.oracle import approvals, effects, log, outcomes, sessions, submissions
from ops.chaos.received import Violation

Check = Callable[[Evidence], Iterator[Violation]]

CHECKS: tuple[Check, ...] = (
    log.acknowledged,
    log.streams,
    log.writers,
    log.ended,
    effects.bodies,
    effects.keys,
    effects.results,
    effects.model_calls,
    approvals.granted,
    approvals.settled_once,
    approvals.decisions,
    submissions.once,
    submissions.answers,
    sessions.apart,
    sessions.turns,
    outcomes.continuations,
    outcomes.resolutions,
    outcomes.cancels,
    outcomes.settled,
)


def audit(evidence: Evidence) -> list[Violation]:
    """Everything that is wrong, in the order of the rules."""
    found = [*evidence.received.violations]
    found += [Violation(rule="defects", what=what) for what in evidence.defects]
    for check in CHECKS:
        found += check(evidence)
    return found
