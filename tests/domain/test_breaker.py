"""The circuit of a provider (BREAK)."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from domain.breaker import (
    PROBE_WAIT_S,
    Admitted,
    BreakerPolicy,
    Circuit,
    CircuitStatus,
    ProviderUnavailable,
    Rejected,
    abandoned,
    admit,
    counts,
    failed,
    status_of,
    succeeded,
)
from domain.errors import Unavailable
from domain.failure import CallFailure, FailureClass, FailureKind, classify
from tests.domain.strategies import call_failures

POLICY = BreakerPolicy(failure_threshold=3, break_s=30.0, probe_patience_s=20.0)


def let_in(circuit: Circuit, now: float = 0.0) -> Admitted:
    admitted = admit(circuit, POLICY, now)
    assert isinstance(admitted, Admitted)
    return admitted


def after_calls(outcomes: Iterable[bool], circuit: Circuit | None = None, now: float = 0.0) -> Circuit:
    """The circuit after these calls, one after the other."""
    circuit = circuit or Circuit()
    for well in outcomes:
        ticket = let_in(circuit, now)
        circuit = succeeded(ticket.circuit, ticket) if well else failed(ticket.circuit, ticket, POLICY, now)
    return circuit


OPEN = after_calls([False] * 3, now=100.0)


def test_failures_in_a_row_open_it() -> None:
    """BREAK-1."""
    assert status_of(after_calls([False] * 2), POLICY, 0.0) is CircuitStatus.CLOSED
    assert status_of(after_calls([False] * 3), POLICY, 0.0) is CircuitStatus.OPEN


def test_one_success_resets_the_count() -> None:
    """BREAK-1."""
    assert after_calls([False, False, True, False, False]).opened_at is None


def test_a_success_leaves_the_calls_that_are_out_their_say() -> None:
    """BREAK-1."""
    tickets = [let_in(Circuit()) for _ in range(4)]
    circuit = succeeded(Circuit(), tickets[0])
    for ticket in tickets[1:]:
        circuit = failed(circuit, ticket, POLICY, 7.0)
    assert circuit.opened_at == 7.0


def test_it_takes_five_failures_and_half_a_minute_unless_told_otherwise() -> None:
    """BREAK-1."""
    assert BreakerPolicy() == BreakerPolicy(failure_threshold=5, break_s=30.0)


def test_a_threshold_of_one_opens_at_the_first_failure() -> None:
    circuit = Circuit()
    ticket = let_in(circuit)
    assert failed(circuit, ticket, BreakerPolicy(failure_threshold=1), 0.0).opened_at == 0.0


@pytest.mark.parametrize(("now", "left"), [(100.0, 30.0), (115.5, 14.5), (129.0, 1.0)])
def test_an_open_circuit_rejects_and_says_how_long(now: float, left: float) -> None:
    """BREAK-2."""
    assert admit(OPEN, POLICY, now) == Rejected(retry_after_s=left)


def test_after_the_break_one_probe_is_let_through_at_a_time() -> None:
    """BREAK-2."""
    probe = let_in(OPEN, 130.0)
    assert probe.probe
    assert status_of(probe.circuit, POLICY, 130.0) is CircuitStatus.HALF_OPEN
    assert admit(probe.circuit, POLICY, 149.0) == Rejected(retry_after_s=PROBE_WAIT_S)


def test_a_probes_success_closes_it() -> None:
    """BREAK-2."""
    probe = let_in(OPEN, 130.0)
    closed = succeeded(probe.circuit, probe)
    assert status_of(closed, POLICY, 130.0) is CircuitStatus.CLOSED
    assert not let_in(closed, 130.0).probe
    assert after_calls([False] * 2, closed).opened_at is None  # it counts from nothing again


def test_a_probes_failure_opens_it_for_a_whole_break() -> None:
    """BREAK-2."""
    probe = let_in(OPEN, 131.0)
    reopened = failed(probe.circuit, probe, POLICY, 140.0)
    assert admit(reopened, POLICY, 150.0) == Rejected(retry_after_s=20.0)
    assert let_in(reopened, 170.0).probe


def test_a_cancelled_probe_says_nothing_and_frees_its_place() -> None:
    """BREAK-4."""
    probe = let_in(OPEN, 130.0)
    freed = abandoned(probe.circuit, probe)
    assert freed == OPEN
    assert let_in(freed, 130.0).probe


def test_while_a_probe_is_out_all_others_are_told_to_come_back_soon() -> None:
    """BREAK-2: it may end at any time, and at the latest when its patience is over."""
    probe = let_in(OPEN, 130.0)
    assert admit(probe.circuit, POLICY, 130.0) == Rejected(retry_after_s=PROBE_WAIT_S)
    assert admit(probe.circuit, POLICY, 149.75) == Rejected(retry_after_s=0.25)


def test_a_probe_that_hangs_does_not_shut_everybody_out() -> None:
    """BREAK-2: overdue, it makes room for another, one at a time like the first."""
    hanging = let_in(OPEN, 130.0)
    second = let_in(hanging.circuit, 150.0)
    assert second.probe
    assert isinstance(admit(second.circuit, POLICY, 169.0), Rejected)


@pytest.mark.parametrize("late", [True, False], ids=["the overdue one", "the other one"])
def test_the_first_of_two_probes_to_end_decides(late: bool) -> None:
    """BREAK-2: a slow provider is a healthy one, however late its answer is."""
    hanging = let_in(OPEN, 130.0)
    second = let_in(hanging.circuit, 150.0)
    first, then = (hanging, second) if late else (second, hanging)
    closed = succeeded(second.circuit, first)
    assert status_of(closed, POLICY, 151.0) is CircuitStatus.CLOSED
    assert failed(closed, then, POLICY, 152.0) == closed, "the later one is of the past"
    opened = failed(second.circuit, first, POLICY, 151.0)
    assert status_of(opened, POLICY, 151.0) is CircuitStatus.OPEN
    assert succeeded(opened, then) == opened


def test_an_overdue_probe_that_is_cancelled_does_not_free_the_place_of_another() -> None:
    """BREAK-4: it frees its own, which is gone."""
    hanging = let_in(OPEN, 130.0)
    second = let_in(hanging.circuit, 150.0)
    assert abandoned(second.circuit, hanging) == second.circuit
    assert let_in(abandoned(second.circuit, second), 150.0).probe


def test_a_cancelled_call_of_a_closed_circuit_changes_nothing() -> None:
    """BREAK-4."""
    circuit = after_calls([False] * 2)
    ticket = let_in(circuit)
    assert abandoned(ticket.circuit, ticket) == circuit


def test_a_call_from_before_the_break_neither_closes_nor_extends_it() -> None:
    slow = let_in(Circuit())
    assert succeeded(OPEN, slow) == OPEN
    assert failed(OPEN, slow, POLICY, 129.0) == OPEN


def test_a_call_from_before_the_break_does_not_decide_for_the_probe() -> None:
    slow = let_in(Circuit())
    probing = let_in(OPEN, 130.0).circuit
    assert succeeded(probing, slow) == probing
    assert failed(probing, slow, POLICY, 131.0) == probing
    assert abandoned(probing, slow) == probing


def test_the_error_of_an_open_circuit_names_the_provider_and_the_wait() -> None:
    """BREAK-2."""
    error = ProviderUnavailable("primary", 12.5)
    assert isinstance(error, Unavailable)
    assert (error.provider_name, error.retry_after_s) == ("primary", 12.5)
    assert str(error) == "the circuit of provider primary is open"


def test_an_open_circuits_error_is_a_failure_of_the_call_that_was_not_made() -> None:
    """BREAK-2, CLASS: an open circuit is `unavailable`."""
    failure = ProviderUnavailable("primary", 12.5).failure
    assert (failure.kind, failure.retry_after_s) == (FailureKind.CIRCUIT_OPEN, 12.5)
    assert classify(failure) is FailureClass.UNAVAILABLE


@pytest.mark.parametrize(
    ("failure_class", "expected"),
    [
        (FailureClass.TRANSIENT, True),
        (FailureClass.UNAVAILABLE, True),
        (FailureClass.EMPTY, False),
        (FailureClass.ERROR_PRE, True),
        (FailureClass.AUTH, True),
        (FailureClass.INVALID, False),
        (FailureClass.CONTENT_FILTERED, False),
        (FailureClass.CANCELLED, False),
        (FailureClass.INTERNAL, False),
    ],
)
def test_only_what_shows_an_unhealthy_provider_counts(failure_class: FailureClass, expected: bool) -> None:
    """CLASS, last column."""
    assert counts(failure_class, CallFailure(kind=FailureKind.STATUS, message="")) is expected


@given(failure=call_failures())
def test_the_circuits_own_rejections_do_not_count(failure: CallFailure) -> None:
    """CLASS: an open circuit's own rejection does not."""
    rejected = CallFailure(kind=FailureKind.CIRCUIT_OPEN, message=failure.message)
    assert not any(counts(failure_class, rejected) for failure_class in FailureClass)


class CircuitMachine(RuleBasedStateMachine):
    """Many calls at once, ending in any order and in any way, the clock going on between them."""

    def __init__(self) -> None:
        super().__init__()
        self.circuit = Circuit()
        self.now = 0.0
        self.out: list[Admitted] = []

    @rule(seconds=st.sampled_from([0.0, 0.5, 10.0, 20.0, 30.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def a_call_asks(self) -> None:
        match admit(self.circuit, POLICY, self.now):
            case Admitted() as ticket:
                assert ticket.probe == (self.circuit.opened_at is not None)
                self.circuit = ticket.circuit
                self.out.append(ticket)
            case Rejected(retry_after_s=wait_s):
                assert self.circuit.opened_at is not None
                assert 0 < wait_s <= POLICY.break_s

    @rule(data=st.data(), how=st.sampled_from(["well", "badly", "cancelled"]))
    @precondition(lambda self: self.out)
    def a_call_ends(self, data: st.DataObject, how: str) -> None:
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        before = self.circuit
        if how == "well":
            self.circuit = succeeded(before, ticket)
        elif how == "badly":
            self.circuit = failed(before, ticket, POLICY, self.now)
        else:
            self.circuit = abandoned(before, ticket)
        if before.opened_at is not None and self.circuit.opened_at is None:
            assert ticket.probe
            assert how == "well"

    @invariant()
    def at_most_one_probe_is_out_that_is_not_overdue(self) -> None:
        since = [
            ticket.circuit.probing_since or 0.0
            for ticket in self.out
            if ticket.probe and ticket.era == self.circuit.era
        ]
        assert sum(self.now < began + POLICY.probe_patience_s for began in since) <= 1
        assert self.circuit.probing_since in (None, max(since, default=None))

    @invariant()
    def a_place_is_never_lost(self) -> None:
        """With the break over, somebody is let in, at once if no call is out, and however many hang."""
        waits_s = [POLICY.break_s] if not self.out else []
        for wait_s in (*waits_s, POLICY.break_s + POLICY.probe_patience_s):
            assert isinstance(admit(self.circuit, POLICY, self.now + wait_s), Admitted)

    @invariant()
    def it_is_open_exactly_from_the_threshold_on(self) -> None:
        assert (self.circuit.failures >= POLICY.failure_threshold) <= (self.circuit.opened_at is not None)


CircuitMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
test_a_circuit_under_any_calls_lets_one_probe_out_and_loses_no_place = CircuitMachine.TestCase
