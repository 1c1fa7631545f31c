"""Runs that wait for a worker: cancelling one in time, and giving one up."""

from domain.commands import CancelQueuedRun, CreateRun, ExhaustAttempts
from domain.decide import RunAlreadyBegun, RunAlreadyEnded
from domain.events import JobAttemptsExhausted, RunCancelled, RunCreated, RunFailed, RunKind
from domain.failure import ErrorClass
from domain.queueing import QueueSpec
from domain.run import RunStatus
from tests.domain.facts import CREATED, OPENED, QUESTION, START, STARTED, calling
from tests.domain.given import given

QUEUE = QueueSpec(lane="bulk", priority=3, max_attempts=2)
QUEUED = RunCreated(tenant="acme", kind=RunKind.AGENT, agent="support", input=(QUESTION,), queue=QUEUE)
GIVEN_UP = JobAttemptsExhausted(attempts=1)
NEVER_BEGUN = RunFailed(
    error="1 workers took the run from its queue, and none came to begin it",
    error_type="interrupted",
    error_class=ErrorClass.INFRASTRUCTURE,
)


def test_how_a_run_is_queued_is_recorded_with_it() -> None:
    """JOB-1: its job is made from this fact and from nothing else."""
    assert given().when(CreateRun(tenant="acme", agent="support", input=(QUESTION,), queue=QUEUE)) == [QUEUED]


def test_a_queued_run_is_begun_by_one_worker() -> None:
    assert given(QUEUED).when(START) == [STARTED]
    given(QUEUED, STARTED).refuses(START, RunAlreadyBegun, "already Running")


def test_a_run_that_no_worker_has_begun_is_cancelled_at_once() -> None:
    """CANCEL-1"""
    assert given(QUEUED).when(CancelQueuedRun(reason="not needed")) == [RunCancelled(reason="not needed")]


def test_a_run_that_has_begun_is_its_owners_to_cancel() -> None:
    """CANCEL-1: a worker that came first is told; its run is not closed under its hands."""
    given(QUEUED, STARTED).refuses(CancelQueuedRun(), RunAlreadyBegun)
    given(QUEUED, RunCancelled()).refuses(CancelQueuedRun(), RunAlreadyEnded)


def test_a_job_out_of_attempts_leaves_a_run_that_had_begun_to_reconciliation() -> None:
    """JOB-1"""
    given_up = given(*OPENED, calling(1)).after(ExhaustAttempts(attempts=1))
    assert given_up.facts[-1] == GIVEN_UP
    assert given_up.run.status is RunStatus.RUNNING
    assert given_up.when(ExhaustAttempts(attempts=1)) == []


def test_a_job_out_of_attempts_closes_a_run_that_never_began() -> None:
    """JOB-1, RECON-2: it never wrote a heartbeat, so nobody else would."""
    assert given(CREATED).when(ExhaustAttempts(attempts=1)) == [GIVEN_UP, NEVER_BEGUN]
    assert given(CREATED, GIVEN_UP).when(ExhaustAttempts(attempts=1)) == [NEVER_BEGUN]
