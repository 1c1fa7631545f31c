"""No check of the oracle is there for show: each has a history that it complains of."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from domain import events as e
from domain.ids import RunId
from domain.waiting import AwaitedCall, CallDecision, WaitOver
from ops.chaos.evidence import Evidence, Row
from ops.chaos.oracle import approvals, effects, log, outcomes, sessions, submissions
from ops.chaos.oracle.audit import CHECKS, Check, audit
from ops.chaos.received import Answer, Decided, Received, Resolved
from ops.chaos.workload import APPROVED, Submission, Way
from tests.chaos.forged import (
    ASKED,
    BODIES,
    CALL,
    CALLED,
    COMPLETED,
    CREATED,
    INVOKING,
    ORPHANED,
    OTHER,
    PLAN,
    REPLIED,
    RETURNED,
    RUN,
    STARTED,
    STRANGER,
    WHOLE,
    body,
    evidence,
    frame,
    rows,
    second,
    with_run,
)


def received(
    *answers: Answer,
    resolved: tuple[Resolved, ...] = (),
    decided: tuple[Decided, ...] = (),
    cancelled: bool = False,
) -> Received:
    told = Received()
    told.told_of(RUN, PLAN.number)
    told.answers += answers
    told.resolved += resolved
    told.decided += decided
    told.cancels += [RUN] * cancelled
    for one in map(frame, rows(WHOLE)):
        told.frame(RUN, one)
    return told


def reserved() -> e.IdempotencyKeyReserved:
    return e.IdempotencyKeyReserved(
        key="k", method="POST", path="/", fingerprint="f", run_id=RunId(RUN), form="run"
    )


ONE, TWO = (
    Answer(
        number=7,
        status=200,
        run_id=RUN,
        key="k",
        body=msgspec.json.encode({"status": "Completed", "answer": COMPLETED.answer, **more}),
    )
    for more in ({}, {"cost": 1})
)
AWAITED = AwaitedCall(call_id=CALL.id, tool=APPROVED, arguments="{}", effect=e.ToolEffect.DESTRUCTIVE)
RESOLVED = Resolved(run_id=RUN, call_id=CALL.id, output="done", failed=False)
TWICE = {RUN: rows(WHOLE), OTHER: rows(WHOLE, OTHER, position=3)}
REPEATED = {
    RUN: rows((CREATED, STARTED, CALLED, REPLIED, INVOKING)),
    OTHER: rows((CREATED, STARTED, CALLED, REPLIED, INVOKING), OTHER),
}

WAITING = (CREATED, STARTED, CALLED, REPLIED, e.RunAwaitingApproval(calls=(AWAITED,)))
"""A run that waits for somebody to approve of its call."""

DOCTORED: dict[Check, Evidence] = {
    log.acknowledged: with_run(*WHOLE[:-1], received=received()),
    log.streams: evidence(streams={RUN: rows(WHOLE)[:2] + rows(WHOLE)[3:]}),
    log.writers: with_run(*WHOLE, writers=[STRANGER] * 3 + [OTHER] * 4),
    log.ended: with_run(*WHOLE[:-1]),
    effects.bodies: evidence(bodies=(body("began", 4.9), body("ended", 5.5))),
    effects.keys: evidence(streams=REPEATED, bodies=(body("began", 5.1), body("began", 5.1, run_id=OTHER))),
    effects.results: evidence(bodies=BODIES[:1]),
    effects.model_calls: evidence(calls=(msgspec.structs.replace(ASKED, at=second(8)),)),
    submissions.once: evidence(streams=TWICE),
    submissions.answers: evidence(received=received(ONE, TWO)),
    sessions.apart: evidence(streams=TWICE),
    sessions.turns: evidence(streams={RUN: rows(WHOLE)}),
    outcomes.continuations: with_run(*WHOLE[:5], ORPHANED),
    outcomes.resolutions: evidence(received=received(resolved=(RESOLVED,))),
    outcomes.cancels: with_run(
        *WHOLE[:5], ORPHANED, e.RunContinued(by=RunId(OTHER)), received=received(cancelled=True)
    ),
    outcomes.settled: evidence(streams={OTHER: rows([reserved()], OTHER)}),
    approvals.granted: evidence(bodies=(body("began", 5.1, tool=APPROVED), body("ended", 5.5))),
    approvals.settled_once: with_run(*WAITING),
    approvals.decisions: evidence(received=received(decided=(Decided(run_id=RUN, approved=True),))),
}


def test_every_check_has_a_history_that_it_complains_of() -> None:
    assert set(DOCTORED) == set(CHECKS)


@pytest.mark.parametrize(
    "check", CHECKS, ids=lambda check: f"{check.__module__.split('.')[-1]}.{check.__name__}"
)
def test_a_doctored_history_is_seen_by_its_check_and_by_the_audit(check: Check) -> None:
    found = list(check(DOCTORED[check]))
    assert found
    assert all(violation in audit(DOCTORED[check]) for violation in found)


def test_what_clients_and_hosts_complained_of_is_in_the_audit() -> None:
    told = received()
    told.complain("defects", "GET / was answered 500: oh")
    found = audit(evidence(received=told, defects=["host 0 ended by itself with status 1: oh"]))
    assert [violation.rule for violation in found] == ["defects", "defects"]


class TestSessions:
    """The runs of a session go one after the other, by their positions in the log."""

    def test_the_next_may_begin_once_the_one_before_is_over(self) -> None:
        later = rows(WHOLE, OTHER, position=100)
        assert list(sessions.apart(evidence(streams={RUN: rows(WHOLE), OTHER: later}))) == []

    def test_one_that_has_no_end_holds_the_session(self) -> None:
        later = rows(WHOLE, OTHER, position=100)
        [found] = sessions.apart(evidence(streams={RUN: rows(WHOLE[:-1]), OTHER: later}))
        assert found.run_id == OTHER

    def test_one_that_never_began_holds_up_nobody(self) -> None:
        cancelled = rows((CREATED, e.RunCancelled()))
        later = rows(WHOLE, OTHER, position=100)
        assert list(sessions.apart(evidence(streams={RUN: cancelled, OTHER: later}))) == []


def test_a_run_may_end_as_it_will_after_its_cancel_was_accepted() -> None:
    """CANCEL-1: 202 says that it was asked for."""
    told = received(cancelled=True)
    assert list(outcomes.cancels(evidence(received=told))) == []
    assert list(outcomes.cancels(with_run(*WHOLE[:5], ORPHANED, received=told))) == []


class TestOutcomes:
    """CONT-3, IDEM-5: what is uncertain is somebody's to decide, and what was decided is acted on."""

    BLOCKED = e.RunContinuationBlocked(
        cause=e.ContinuationBlock.OUTCOME_UNKNOWN,
        reason="r",
        remedy=f"POST /api/runs/{RUN}/tools/call_1/resolve",
    )
    SAID = e.ToolResolved(call_id=CALL.id, tool=CALL.name, output="done")
    LEFT = (*WHOLE[:5], ORPHANED, BLOCKED)

    def resolved(self, *events: e.Event) -> Evidence:
        return evidence(streams={RUN: rows(events)}, received=received(resolved=(RESOLVED,)))

    def test_a_resolution_that_the_log_has_otherwise(self) -> None:
        other = msgspec.structs.replace(self.SAID, output="refused")
        [found] = outcomes.resolutions(self.resolved(*self.LEFT, other))
        assert found.rule == "acknowledged"

    def test_a_run_that_stays_blocked_by_a_call_that_was_resolved(self) -> None:
        [found] = outcomes.resolutions(self.resolved(*self.LEFT, self.SAID))
        assert found.rule == "outcomes"

    def test_a_run_that_goes_on_or_is_blocked_by_something_else(self) -> None:
        continued = e.RunContinued(by=RunId(OTHER))
        assert list(outcomes.resolutions(self.resolved(*self.LEFT, self.SAID, continued))) == []
        other = msgspec.structs.replace(self.BLOCKED, cause=e.ContinuationBlock.NO_SESSION)
        assert list(outcomes.resolutions(self.resolved(*self.LEFT, self.SAID, other))) == []

    def test_a_key_may_stay_in_progress_only_while_its_run_is_uncertain(self) -> None:
        key = rows([reserved()], OTHER)
        uncertain = {RUN: rows(self.LEFT), OTHER: key}
        assert list(outcomes.settled(evidence(streams=uncertain))) == []
        over = {RUN: rows(WHOLE), OTHER: key}
        assert len(list(outcomes.settled(evidence(streams=over)))) == 1

    def test_a_key_that_was_released_is_settled(self) -> None:
        free = rows([reserved(), e.IdempotencyKeyReleased(run_id=RunId(RUN), reason="run_failed")], OTHER)
        assert list(outcomes.settled(evidence(streams={OTHER: free}))) == []


class TestApprovals:
    """TOOL-2: what waits for a person is done if somebody approved of it; an approval is settled once."""

    ASKED_FOR = e.ApprovalRequested(run_id=RunId(RUN), agent="worker", calls=(AWAITED,))
    EXPIRED = e.ApprovalExpired(run_id=RunId(RUN))
    APPROVAL = UUID(int=60)

    def decided(self, *, approved: bool) -> e.ApprovalDecided:
        decisions = {CALL.id: CallDecision(approved=approved)}
        return e.ApprovalDecided(run_id=RunId(RUN), decisions=decisions, opens=RunId(OTHER))

    def whole(
        self, *afterwards: e.Event, settled: tuple[e.Event, ...], approved: bool = True, **changes: Any
    ) -> Evidence:
        """A run that waited, its approval, and the run in which the call was made."""
        decisions = {CALL.id: CallDecision(approved=approved)}
        opened = msgspec.structs.replace(CREATED, continued_from_run_id=RunId(RUN), decisions=decisions)
        streams = {
            RUN: rows((*WAITING, *afterwards)),
            OTHER: rows((opened, STARTED, INVOKING, RETURNED, COMPLETED), OTHER, position=100),
            self.APPROVAL: rows((self.ASKED_FOR, *settled), self.APPROVAL),
        }
        made = body("began", 5.1, tool=APPROVED, run_id=OTHER)
        return evidence(streams=streams, bodies=(made,), **changes)

    def test_one_that_was_approved_opens_a_run_that_makes_the_call(self) -> None:
        told = received(decided=(Decided(run_id=RUN, approved=True),))
        continued = e.RunContinued(by=RunId(OTHER))
        whole = self.whole(continued, settled=(self.decided(approved=True),), received=told)
        checks: tuple[Check, ...] = (approvals.granted, approvals.settled_once, approvals.decisions)
        assert [violation for check in checks for violation in check(whole)] == []

    def test_a_call_that_was_rejected_and_made(self) -> None:
        rejected = self.whole(settled=(self.decided(approved=False),), approved=False)
        [found] = approvals.granted(rejected)
        assert found.run_id == OTHER

    def test_a_decision_that_is_on_record_otherwise(self) -> None:
        told = received(decided=(Decided(run_id=RUN, approved=True),))
        [found] = approvals.decisions(self.whole(settled=(self.decided(approved=False),), received=told))
        assert found.rule == "acknowledged"

    def test_one_that_expired_and_was_decided(self) -> None:
        ended = e.RunWaitEnded(cause=WaitOver.EXPIRED)
        continued = e.RunContinued(by=RunId(OTHER))
        twice = self.whole(ended, continued, settled=(self.EXPIRED, self.decided(approved=True)))
        assert len(list(approvals.settled_once(twice))) == 1
        assert list(approvals.settled_once(self.whole(ended, settled=(self.EXPIRED,)))) == []

    def test_one_that_nobody_decided_must_expire(self) -> None:
        asked = msgspec.structs.replace(self.ASKED_FOR, expires_after_s=20.0)
        streams = {RUN: rows(WAITING), self.APPROVAL: rows((asked,), self.APPROVAL)}
        assert list(approvals.settled_once(evidence(streams=streams))) == []
        late = tuple(map(_later, rows(WHOLE, OTHER, position=100)))
        assert len(list(approvals.settled_once(evidence(streams={**streams, OTHER: late})))) == 1

    def test_a_run_that_does_not_know_what_came_of_its_approval(self) -> None:
        assert len(list(approvals.settled_once(self.whole(settled=(self.EXPIRED,))))) == 1
        assert len(list(approvals.settled_once(self.whole(settled=(self.decided(approved=True),))))) == 1


def test_what_was_accepted_with_a_key_is_one_run_although_it_failed() -> None:
    """IDEM-4: the key keeps that it was accepted, not what came of it."""
    failed = rows((CREATED, STARTED, ORPHANED))
    later = tuple(map(_later, rows((CREATED, STARTED, RETURNED, COMPLETED), OTHER, position=100)))
    for way, violations in ((Way.KEYED, 0), (Way.QUEUED, 1)):
        wanted = {7: Submission(at_s=0, way=way, plan=PLAN, host=0, key="k")}
        found = submissions.once(evidence(streams={RUN: failed, OTHER: later}, submissions=wanted))
        assert len(list(found)) == violations


def _later(row: Row) -> Row:
    at = row.at.replace(minute=1)
    return msgspec.structs.replace(row, recorded=msgspec.structs.replace(row.recorded, at=at))
