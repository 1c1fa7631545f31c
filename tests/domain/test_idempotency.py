"""A key: who has it, what it answers, and when it is free again (IDEM)."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from domain import events as e
from domain.evolve import fold as fold_run
from domain.failure import ErrorClass
from domain.idempotency import (
    ChainState,
    Complete,
    KeptFor,
    Key,
    KeyCommand,
    KeyedRequest,
    KeyInProgress,
    KeyNotHeld,
    KeyReused,
    Release,
    Reserve,
    answer_to,
    decide,
    evolve,
    fingerprint_of,
    fold,
    state_of,
)
from domain.ids import RunId, Version, idempotency_stream
from domain.run import Run
from tests.domain import facts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN, OTHER_RUN, LATER_RUN = (RunId(UUID(int=number)) for number in (1, 2, 3))
REQUEST = KeyedRequest.of("k", "POST", "/run", b"{}")
OTHER = KeyedRequest.of("k", "POST", "/run", b"{ }")
RESERVE = Reserve(request=REQUEST, run_id=RUN, form="run")
COMPLETE = Complete(reserved_by=RUN, run_id=RUN, status=200, content_type="application/json", body='{"a":1}')
RELEASE = Release(reserved_by=RUN, run_id=RUN, reason="run_failed")
DAY_S = 86400.0


def recorded(event: e.IdempotencyEvent, number: int, at: datetime = NOON) -> e.Recorded[e.IdempotencyEvent]:
    return e.Recorded(
        stream_id=idempotency_stream("acme", "k"),
        sequence=Version(number),
        position=number,
        at=at,
        tenant="acme",
        event=event,
    )


def after(*commands: KeyCommand) -> Key:
    """A key with this past."""
    key = Key()
    for command in commands:
        for event in decide(key, command):
            key = evolve(key, recorded(event, key.version + 1))
    return key


def test_a_new_key_is_given_to_the_first_request() -> None:
    """IDEM-5: the reservation names its run."""
    assert answer_to(Key(), REQUEST) is None
    assert decide(Key(), RESERVE) == [
        e.IdempotencyKeyReserved(
            key="k", method="POST", path="/run", fingerprint=REQUEST.fingerprint, run_id=RUN, form="run"
        )
    ]


def test_while_it_is_in_progress_the_same_request_is_told_to_come_again() -> None:
    """IDEM-3: same key still in progress."""
    key = after(RESERVE)
    with pytest.raises(KeyInProgress) as refused:
        answer_to(key, REQUEST)
    assert (refused.value.run_id, refused.value.retry_after_s) == (RUN, 1.0)
    with pytest.raises(KeyInProgress):
        decide(key, msgspec.structs.replace(RESERVE, run_id=OTHER_RUN))


@pytest.mark.parametrize("past", [(RESERVE,), (RESERVE, COMPLETE)])
def test_another_request_is_never_given_somebody_elses_answer(past: tuple[KeyCommand, ...]) -> None:
    """IDEM-3: same key, other path or body."""
    key = after(*past)
    with pytest.raises(KeyReused):
        answer_to(key, OTHER)
    with pytest.raises(KeyReused):
        decide(key, Reserve(request=OTHER, run_id=OTHER_RUN, form="run"))


def test_a_completed_key_answers_what_it_was_completed_with() -> None:
    """IDEM-3"""
    key = after(RESERVE, COMPLETE)
    answer = answer_to(key, REQUEST)
    assert answer is not None
    assert (answer.status, answer.body, answer.run_id) == (200, '{"a":1}', RUN)
    assert decide(key, msgspec.structs.replace(RESERVE, run_id=OTHER_RUN)) == []


def test_a_released_key_is_as_good_as_new_for_any_request() -> None:
    """IDEM-3: non-2xx or an exception."""
    key = after(RESERVE, RELEASE)
    assert answer_to(key, OTHER) is None
    assert decide(key, Reserve(request=OTHER, run_id=OTHER_RUN, form="run")) != []


@pytest.mark.parametrize("late", [COMPLETE, RELEASE])
@pytest.mark.parametrize(
    "past",
    [
        (),
        (RESERVE, RELEASE),
        (RESERVE, COMPLETE),
        (RESERVE, RELEASE, msgspec.structs.replace(RESERVE, run_id=OTHER_RUN)),
    ],
)
def test_who_does_not_have_the_key_cannot_settle_it(past: tuple[KeyCommand, ...], late: KeyCommand) -> None:
    """IDEM-5: an operator released it, say, and another submission has it now."""
    with pytest.raises(KeyNotHeld):
        decide(after(*past), late)


@pytest.mark.parametrize(
    ("age", "free"), [(timedelta(days=1), True), (timedelta(days=1, microseconds=-1), False)]
)
def test_an_answer_that_is_old_enough_frees_its_key(age: timedelta, free: bool) -> None:
    """IDEM-5: retention."""
    kept = KeptFor(age_s=DAY_S, now=NOON + age)
    key = after(RESERVE, COMPLETE)
    assert (answer_to(key, REQUEST, kept) is None) is free
    if free:
        again = Reserve(request=OTHER, run_id=OTHER_RUN, form="run", kept=kept)
        assert decide(key, again) != []
    else:
        with pytest.raises(KeyReused):
            answer_to(key, OTHER, kept)


def test_a_submission_in_progress_has_the_key_however_long_it_takes() -> None:
    """IDEM-5"""
    with pytest.raises(KeyInProgress):
        answer_to(after(RESERVE), REQUEST, KeptFor(age_s=DAY_S, now=NOON + timedelta(days=365)))


@given(st.tuples(st.text(), st.text(), st.binary()), st.tuples(st.text(), st.text(), st.binary()))
def test_fingerprints_are_equal_for_equal_requests_alone(
    one: tuple[str, str, bytes], other: tuple[str, str, bytes]
) -> None:
    """IDEM-3"""
    assert (fingerprint_of(*one) == fingerprint_of(*other)) is (one == other)


def test_parts_of_a_request_do_not_run_into_each_other() -> None:
    """IDEM-3"""
    assert fingerprint_of("POST", "/a", b"b") != fingerprint_of("POST", "/ab", b"")
    assert fingerprint_of("POST", "/a", b"") != fingerprint_of("POS", "T/a", b"")


def test_the_same_key_of_two_tenants_is_two() -> None:
    """IDEM-3: identity is tenant and key."""
    assert idempotency_stream("a", "bc") != idempotency_stream("ab", "c")
    assert idempotency_stream("acme", "k") == idempotency_stream("acme", "k")


FAILED = e.RunFailed(error="no", error_type="tool_failed", error_class=ErrorClass.INTERNAL)
ORPHANED = e.RunFailed(error="gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
BLOCKED = e.RunContinuationBlocked(cause=e.ContinuationBlock.NO_SESSION, reason="r", remedy="m")
DOUBTED = msgspec.structs.replace(BLOCKED, cause=e.ContinuationBlock.OUTCOME_UNKNOWN)
FOUND_OUT = e.ToolResolved(call_id="c1", tool="refund", output="done")
CALL = facts.call("c1", "refund")
EXTERNAL = msgspec.structs.replace(facts.invoking(CALL), effect=e.ToolEffect.EXTERNAL)
UNSURE = (*facts.OPENED, *facts.asked_for(CALL), EXTERNAL)


def run(*events: e.RunEvent) -> Run:
    return fold_run(RUN, events)


@pytest.mark.parametrize(
    ("events", "continues", "state"),
    [
        (facts.OPENED, True, ChainState.OPEN),
        ((*facts.OPENED, e.RunCompleted(answer="a")), True, ChainState.ANSWERED),
        ((*facts.OPENED, e.RunCancelled()), True, ChainState.NOTHING),
        ((*facts.OPENED, FAILED), True, ChainState.NOTHING),
        ((*facts.OPENED, ORPHANED), True, ChainState.OPEN),
        ((*facts.OPENED, ORPHANED), False, ChainState.NOTHING),
        ((*facts.OPENED, ORPHANED, BLOCKED), True, ChainState.NOTHING),
        ((*facts.OPENED, ORPHANED, e.RunContinued(by=LATER_RUN)), False, ChainState.OPEN),
        ((*UNSURE, ORPHANED, BLOCKED), True, ChainState.UNCERTAIN),
        ((*UNSURE, ORPHANED), False, ChainState.UNCERTAIN),
        ((*UNSURE, ORPHANED, BLOCKED, FOUND_OUT), True, ChainState.NOTHING),
        ((*UNSURE, ORPHANED, DOUBTED, FOUND_OUT), True, ChainState.DUE),
        ((*UNSURE, ORPHANED, DOUBTED, FOUND_OUT, BLOCKED), True, ChainState.NOTHING),
    ],
)
def test_a_key_follows_what_its_runs_come_to(
    events: tuple[e.RunEvent, ...], continues: bool, state: ChainState
) -> None:
    """IDEM-5"""
    assert state_of([run(*events)], continues=continues) is state


def test_what_an_earlier_run_of_the_chain_left_uncertain_stays_so() -> None:
    """IDEM-5"""
    first = run(*UNSURE, ORPHANED, e.RunContinued(by=LATER_RUN))
    last = run(*facts.OPENED, ORPHANED, BLOCKED)
    assert state_of([first, last], continues=True) is ChainState.UNCERTAIN
    done = run(*facts.OPENED, e.RunCompleted(answer="a"))
    assert state_of([first, done], continues=True) is ChainState.ANSWERED


class KeyMachine(RuleBasedStateMachine):
    """Requests, hosts and an operator do what they like, in any order and with an old view of the key."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: list[e.Recorded[e.IdempotencyEvent]] = []
        self.now = NOON
        self.runs = 0
        self.seen = 0
        """How much of the stream the slowest host has read."""

    @property
    def key(self) -> Key:
        return fold(self.facts)

    def attempt(self, command: KeyCommand, *, from_version: int | None = None) -> bool:
        """Decide on some past state, and append only if nothing came after it, as the log does."""
        seen = len(self.facts) if from_version is None else from_version
        try:
            events = decide(fold(self.facts[:seen]), command)
        except (KeyReused, KeyInProgress, KeyNotHeld):
            return False
        if seen != len(self.facts):
            return False
        self.facts += [recorded(event, seen + 1, self.now) for event in events]
        return bool(events)

    @rule(body=st.sampled_from([b"one", b"two"]), behind=st.integers(0, 2))
    def a_request_comes(self, body: bytes, behind: int) -> None:
        self.runs += 1
        request = KeyedRequest.of("k", "POST", "/run", body)
        reserve = Reserve(request=request, run_id=RunId(UUID(int=self.runs)), form="run", kept=self.kept())
        before = self.key
        if self.attempt(reserve, from_version=max(0, len(self.facts) - behind)):
            aged = before.completed_at is not None and self.kept().is_over(before.completed_at)
            assert before.reserved is None or aged

    @rule(run_id=st.integers(1, 30), body=st.sampled_from(["x", "y"]), behind=st.integers(0, 2))
    def a_run_ends_well(self, run_id: int, body: str, behind: int) -> None:
        held_by = self.key.reserved.run_id.int if self.key.in_progress and self.key.reserved else None
        complete = Complete(
            reserved_by=RunId(UUID(int=run_id)),
            run_id=RunId(UUID(int=run_id)),
            status=200,
            content_type="text/plain",
            body=body,
        )
        if self.attempt(complete, from_version=max(0, len(self.facts) - behind)):
            assert held_by == run_id

    @rule(run_id=st.integers(1, 30))
    def a_run_fails(self, run_id: int) -> None:
        run = RunId(UUID(int=run_id))
        self.attempt(Release(reserved_by=run, run_id=run, reason="run_failed"))

    @precondition(lambda self: self.key.in_progress)
    @rule()
    def an_operator_releases(self) -> None:
        reserved = self.key.reserved
        assert reserved is not None
        assert self.attempt(Release(reserved_by=reserved.run_id, run_id=reserved.run_id, reason="operator"))
        assert not self.key.in_progress

    @rule(hours=st.integers(1, 30))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    def kept(self) -> KeptFor:
        return KeptFor(age_s=DAY_S, now=self.now)

    @invariant()
    def the_stream_is_reservations_each_settled_at_most_once(self) -> None:
        """Between two reservations the first was released, or its answer grew old."""
        open_by: RunId | None = None
        answered_at: datetime | None = None
        for fact in self.facts:
            match fact.event:
                case e.IdempotencyKeyReserved(run_id=run_id):
                    assert open_by is None
                    assert answered_at is None or fact.at - answered_at >= timedelta(days=1)
                    open_by, answered_at = run_id, None
                case e.IdempotencyKeyCompleted():
                    assert open_by is not None
                    open_by, answered_at = None, fact.at
                case e.IdempotencyKeyReleased():
                    assert open_by is not None
                    open_by = None

    @invariant()
    def what_is_answered_is_what_was_kept_last(self) -> None:
        key = self.key
        if key.completed is not None and key.reserved is not None:
            request = KeyedRequest(key="k", method="POST", path="/run", fingerprint=key.reserved.fingerprint)
            assert answer_to(key, request) == self.facts[-1].event


TestKeyMachine = KeyMachine.TestCase
