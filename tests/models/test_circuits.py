"""The circuits of a host: who is let through, what opens and closes one, what is shown of it (BREAK)."""

import logging

import pytest

from app.metrics import Metrics
from app.models.accounts import Account
from app.models.circuits import Circuits, ProviderHealth
from app.settings import CircuitBreakerSettings
from domain.breaker import CircuitStatus, ProviderUnavailable
from domain.failure import CallFailure, FailureClass, FailureKind
from tests.models.clock import Clock

DOWN = CallFailure(kind=FailureKind.STATUS, status=503, message="down")
P = Account("primary")


class Circuit:
    """A host's circuits, a clock to move, and calls that go one way or the other."""

    def __init__(self, *, enabled: bool = True, threshold: int = 3) -> None:
        self.clock = Clock()
        self.metrics = Metrics()
        settings = CircuitBreakerSettings(enabled=enabled, failure_threshold=threshold, break_duration=30.0)
        self.circuits = Circuits(settings, self.metrics, [P], self.clock)

    def fails(self, times: int = 1, failure_class: FailureClass = FailureClass.UNAVAILABLE) -> None:
        for _ in range(times):
            self.circuits.fail(P, self.circuits.admit(P), failure_class, DOWN)

    def succeeds(self) -> None:
        self.circuits.succeed(P, self.circuits.admit(P))

    def wait_s(self, account: Account = P) -> float | None:
        """How long a call would have to wait; None: it may be made. Nothing is taken by asking."""
        try:
            self.circuits.check(account)
        except ProviderUnavailable as refused:
            return refused.retry_after_s
        return None

    def series(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"tracon_circuit_{name}", {"provider": P.provider})


@pytest.fixture
def circuit() -> Circuit:
    return Circuit()


def test_it_opens_after_failures_in_a_row_and_says_for_how_long(circuit: Circuit) -> None:
    """BREAK-1, BREAK-2; C24, C27: call N + 1 is not made."""
    circuit.fails(2)
    assert circuit.wait_s() is None
    circuit.fails()
    assert circuit.wait_s() == 30.0
    circuit.clock.pass_(12.5)
    with pytest.raises(ProviderUnavailable) as refused:
        circuit.circuits.check(P)
    assert (refused.value.provider_name, refused.value.retry_after_s) == (P.provider, 17.5)


def test_one_success_resets_the_count(circuit: Circuit) -> None:
    """BREAK-1."""
    circuit.fails(2)
    circuit.succeeds()
    circuit.fails(2)
    assert circuit.wait_s() is None


@pytest.mark.parametrize(
    "failure_class", [FailureClass.INVALID, FailureClass.EMPTY, FailureClass.CONTENT_FILTERED]
)
def test_what_says_nothing_about_the_provider_does_not_count(
    circuit: Circuit, failure_class: FailureClass
) -> None:
    """BREAK-1, CLASS: one caller's bad requests cannot shut out the others; nor do they prove health."""
    circuit.fails(2)
    circuit.fails(20, failure_class)
    assert circuit.wait_s() is None
    circuit.fails()
    assert circuit.wait_s() == 30.0


def test_every_provider_has_its_own(circuit: Circuit) -> None:
    """BREAK-1; C22."""
    circuit.fails(3)
    assert circuit.wait_s(Account("another")) is None


def test_after_the_break_one_call_at_a_time_may_try(circuit: Circuit) -> None:
    """BREAK-2."""
    circuit.fails(3)
    circuit.clock.pass_(30.0)
    assert circuit.wait_s() is None
    probe = circuit.circuits.admit(P)
    assert circuit.wait_s() == 1.0
    with pytest.raises(ProviderUnavailable):
        circuit.circuits.admit(P)
    circuit.circuits.succeed(P, probe)
    assert circuit.wait_s() is None


def test_a_probe_that_fails_opens_it_for_another_break(circuit: Circuit) -> None:
    """BREAK-2."""
    circuit.fails(3)
    circuit.clock.pass_(30.0)
    circuit.fails()
    assert circuit.wait_s() == 30.0


def test_a_probe_that_is_cancelled_frees_its_place_and_changes_nothing(circuit: Circuit) -> None:
    """BREAK-4."""
    circuit.fails(3)
    circuit.clock.pass_(30.0)
    circuit.circuits.abandon(P, circuit.circuits.admit(P))
    assert circuit.circuits.health(P).circuit is CircuitStatus.HALF_OPEN
    circuit.circuits.abandon(P, circuit.circuits.admit(P))


@pytest.mark.parametrize("failure_class", [FailureClass.INVALID, FailureClass.CONTENT_FILTERED])
def test_a_probe_whose_failure_says_nothing_frees_its_place(
    circuit: Circuit, failure_class: FailureClass
) -> None:
    """BREAK-4: it leaves the circuit as it found it."""
    circuit.fails(3)
    circuit.clock.pass_(30.0)
    circuit.fails(1, failure_class)
    assert circuit.wait_s() is None
    assert circuit.circuits.health(P).circuit is CircuitStatus.HALF_OPEN


def test_a_ticket_that_is_back_is_void(circuit: Circuit) -> None:
    """BREAK-4: the gate gives up every ticket in the end, also one that was brought back."""
    circuit.fails(3)
    circuit.clock.pass_(30.0)
    first = circuit.circuits.admit(P)
    circuit.circuits.fail(P, first, FailureClass.UNAVAILABLE, DOWN)
    circuit.clock.pass_(30.0)
    circuit.circuits.admit(P)
    circuit.circuits.abandon(P, first)
    assert circuit.wait_s() == 1.0, "the second probe is out, whatever becomes of the first one's ticket"


def test_a_call_that_was_out_when_it_opened_does_not_close_it(circuit: Circuit) -> None:
    """BREAK-2."""
    slow = circuit.circuits.admit(P)
    circuit.fails(3)
    circuit.circuits.succeed(P, slow)
    assert circuit.wait_s() == 30.0


def test_switched_off_it_lets_everything_through() -> None:
    """BREAK-1: `enabled`."""
    circuit = Circuit(enabled=False, threshold=1)
    circuit.fails(10)
    assert circuit.wait_s() is None
    circuit.succeeds()
    assert circuit.circuits.health(P).circuit is CircuitStatus.CLOSED


def test_its_state_is_told_to_people(circuit: Circuit) -> None:
    assert circuit.circuits.health(P) == ProviderHealth(
        provider="primary",
        key="shared",
        circuit=CircuitStatus.CLOSED,
        consecutive_failures=0,
        retry_after_s=None,
    )
    circuit.fails(3)
    circuit.clock.pass_(10.0)
    assert circuit.circuits.health(P) == ProviderHealth(
        provider="primary",
        key="shared",
        circuit=CircuitStatus.OPEN,
        consecutive_failures=3,
        retry_after_s=20.0,
    )


def test_its_series_are_there_before_anything_happens_and_follow_it(circuit: Circuit) -> None:
    assert (circuit.series("open"), circuit.series("opened_total")) == (0, 0)
    circuit.fails(3)
    circuit.wait_s()
    assert (circuit.series("open"), circuit.series("opened_total")) == (1, 1)
    assert circuit.series("refused_total") == 1
    circuit.clock.pass_(30.0)
    assert circuit.series("open") == 1, "half open is not closed"
    circuit.fails()
    circuit.clock.pass_(30.0)
    circuit.succeeds()
    assert (circuit.series("open"), circuit.series("opened_total")) == (0, 2)


def test_of_tenants_own_circuits_the_number_that_is_open_is_shown(circuit: Circuit) -> None:
    """BREAK-1: tenants are no labels, and the provider's own circuit is another one."""
    tenants = [Account("primary", tenant) for tenant in ("acme", "globex")]

    def shown() -> float | None:
        labels = {"provider": "primary"}
        return circuit.metrics.registry.get_sample_value("tracon_tenant_circuits_open", labels)

    def fails(account: Account, times: int = 3) -> None:
        for _ in range(times):
            ticket = circuit.circuits.admit(account)
            circuit.circuits.fail(account, ticket, FailureClass.UNAVAILABLE, DOWN)

    for account in tenants:
        fails(account)
    assert (shown(), circuit.series("open"), circuit.series("opened_total")) == (2, 0, 2)
    assert circuit.wait_s() is None
    assert circuit.wait_s(tenants[0]) == 30.0
    circuit.clock.pass_(30.0)
    fails(tenants[0], 1)
    assert shown() == 2, "one that opens again is open already"
    circuit.circuits.succeed(tenants[1], circuit.circuits.admit(tenants[1]))
    assert (shown(), circuit.series("opened_total")) == (1, 3)
    circuit.clock.pass_(30.0)
    circuit.circuits.succeed(tenants[0], circuit.circuits.admit(tenants[0]))
    assert shown() == 0


def test_opening_and_closing_are_logged_once(circuit: Circuit, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        circuit.fails(3)
        circuit.clock.pass_(30.0)
        circuit.succeeds()
        circuit.succeeds()
    assert [record.message for record in caplog.records] == ["circuit.opened", "circuit.closed"]


def test_asking_for_the_state_takes_nothing(circuit: Circuit) -> None:
    circuit.fails(3)
    circuit.clock.pass_(30.0)
    for _ in range(3):
        circuit.circuits.health(P)
        assert circuit.wait_s() is None
