"""For how long the holder of a lease may believe in it."""

from uuid import UUID

from app.clock import elapsed_s
from app.jobs.lease import HeldLeases, LeasedJob
from domain.ids import RunId

RUN, OTHER = RunId(UUID(int=1)), RunId(UUID(int=2))
DURATION_S = 60.0


def job(run_id: RunId = RUN, term: int = 1) -> LeasedJob:
    return LeasedJob(run_id=run_id, lane="default", term=term, attempts=1, max_attempts=1, waited_s=0.0)


def test_a_lease_is_trusted_from_when_it_was_asked_for_and_not_to_its_very_end() -> None:
    """JOB-1: the database counts from later, so here it is over before it is over there."""
    leases = HeldLeases(DURATION_S)
    leases.take(job(), asked_at=100.0)
    assert leases.run_out(149.0) == []
    assert leases.run_out(150.0) == [RUN]
    assert leases.run_out(150.0) == []


def test_a_renewal_counts_from_when_it_was_asked_for() -> None:
    """JOB-1: an answer that takes long gives no more time."""
    leases = HeldLeases(DURATION_S)
    leases.take(job(), asked_at=100.0)
    asked = leases.all()
    assert leases.renewed(asked, {RUN}, asked_at=120.0) == []
    assert leases.run_out(169.0) == []
    assert leases.run_out(170.0) == [RUN]


def test_what_a_renewal_does_not_find_is_lost() -> None:
    leases = HeldLeases(DURATION_S)
    leases.take(job(), asked_at=100.0)
    leases.take(job(OTHER), asked_at=100.0)
    assert leases.renewed(leases.all(), {OTHER}, asked_at=120.0) == [RUN]
    assert list(leases.all()) == [OTHER]


def test_a_lease_that_was_dropped_or_taken_anew_meanwhile_is_not_lost() -> None:
    leases = HeldLeases(DURATION_S)
    leases.take(job(), asked_at=100.0)
    leases.take(job(OTHER), asked_at=100.0)
    asked = leases.all()
    leases.drop(RUN)
    leases.take(job(OTHER, term=2), asked_at=110.0)
    assert leases.renewed(asked, set(), asked_at=120.0) == []
    assert [held.term for held in leases.all().values()] == [2]


def test_that_a_run_was_begun_under_it_outlives_a_renewal() -> None:
    leases = HeldLeases(DURATION_S)
    leases.take(job(), asked_at=100.0)
    leases.begun(RUN)
    leases.renewed(leases.all(), {RUN}, asked_at=120.0)
    assert leases.all()[RUN].begun


def test_a_job_is_held_for_as_long_as_its_lease_is_trusted() -> None:
    """JOB-1, EVENT-3: asked before each effect, since what ran out is taken out only now and then."""
    leases = HeldLeases(DURATION_S)
    leases.take(job(), asked_at=elapsed_s())
    assert leases.holds(RUN)
    leases.take(job(), asked_at=elapsed_s() - DURATION_S)
    assert not leases.holds(RUN)


def test_a_job_whose_lease_was_lost_is_not_held_until_nothing_works_on_it() -> None:
    """JOB-1: and a run that is no job of this host is held as far as leases go."""
    leases = HeldLeases(DURATION_S)
    leases.take(job(), asked_at=elapsed_s())
    leases.renewed(leases.all(), set(), asked_at=elapsed_s())
    leases.take(job(OTHER), asked_at=elapsed_s() - DURATION_S)
    leases.run_out(elapsed_s())
    assert not leases.holds(RUN)
    assert not leases.holds(OTHER)
    leases.forget(RUN)
    assert leases.holds(RUN)
    leases.take(job(OTHER, term=2), asked_at=elapsed_s())
    assert leases.holds(OTHER)
