"""A circuit per provider: after failures in a row no call passes for a while, then one at a time (BREAK).

Times are seconds on any clock that only goes forward. Whoever holds a ticket brings it back exactly once, to
`succeeded`, `failed` or `abandoned`. One from before the circuit opened or closed changes nothing any more.
"""

from enum import StrEnum

import msgspec

from domain.errors import Unavailable
from domain.failure import CallFailure, FailureClass, FailureKind

# How long until one more try is worth it while a probe is out: nobody knows, so soon.
PROBE_WAIT_S = 1.0


class ProviderUnavailable(Unavailable):
    """The provider's circuit is open and no call was made. Try again after `retry_after_s` (BREAK-2)."""

    code = "provider_unavailable"

    def __init__(self, provider_name: str, retry_after_s: float) -> None:
        super().__init__(f"the circuit of provider {provider_name} is open", retry_after_s)
        self.provider_name = provider_name

    @property
    def failure(self) -> CallFailure:
        """The same, as what became of a call."""
        return CallFailure(kind=FailureKind.CIRCUIT_OPEN, message=str(self), retry_after_s=self.retry_after_s)


class BreakerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a circuit opens and for how long."""

    failure_threshold: int = 5
    break_s: float = 30.0
    probe_patience_s: float = 30.0
    """How long a probe keeps the circuit to itself. A provider that takes calls and never answers must not be
    able to shut everybody out through one of them."""


class CircuitStatus(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's health as its calls have shown it."""

    failures: int = 0
    """Counted failures in a row, while closed."""
    opened_at: float | None = None
    probing_since: float | None = None
    """When the call that may try an open circuit went out. It is not back yet."""
    era: int = 0
    """Counts the openings and closings. Tickets of another era are stale."""


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """The call may be made. It is the ticket, too."""

    circuit: Circuit
    probe: bool
    era: int


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """The call must not be made."""

    retry_after_s: float


def admit(circuit: Circuit, policy: BreakerPolicy, now: float) -> Admitted | Rejected:
    """Let a call through or not. A probe occupies the circuit until its ticket comes back, or is overdue.

    What an overdue one comes to still counts: another may be out by then, and whoever is first decides.
    """
    if circuit.opened_at is None:
        return Admitted(circuit=circuit, probe=False, era=circuit.era)
    wait_s = circuit.opened_at + policy.break_s - now
    if wait_s > 0:
        return Rejected(retry_after_s=wait_s)
    if circuit.probing_since is not None:
        left_s = circuit.probing_since + policy.probe_patience_s - now
        if left_s > 0:
            return Rejected(retry_after_s=min(PROBE_WAIT_S, left_s))
    return Admitted(circuit=_with(circuit, probing_since=now), probe=True, era=circuit.era)


def succeeded(circuit: Circuit, ticket: Admitted) -> Circuit:
    """A success ends the row of failures; a probe's closes the circuit."""
    if ticket.era != circuit.era:
        return circuit
    if ticket.probe:
        return Circuit(era=circuit.era + 1)
    return _with(circuit, failures=0)


def failed(circuit: Circuit, ticket: Admitted, policy: BreakerPolicy, now: float) -> Circuit:
    """A counted failure (see `counts`) may open the circuit; a probe's opens it for another break."""
    if ticket.era != circuit.era:
        return circuit
    failures = circuit.failures + 1
    if ticket.probe or failures >= policy.failure_threshold:
        return Circuit(failures=failures, opened_at=now, era=circuit.era + 1)
    return _with(circuit, failures=failures)


def abandoned(circuit: Circuit, ticket: Admitted) -> Circuit:
    """The call said nothing about the provider: it was cancelled, or its failure does not count (BREAK-4)."""
    is_out = ticket.era == circuit.era and circuit.probing_since == ticket.circuit.probing_since
    return _with(circuit, probing_since=None) if ticket.probe and is_out else circuit


def status_of(circuit: Circuit, policy: BreakerPolicy, now: float) -> CircuitStatus:
    """For people and gauges; only `admit` decides."""
    if circuit.opened_at is None:
        return CircuitStatus.CLOSED
    waiting = now < circuit.opened_at + policy.break_s
    return CircuitStatus.OPEN if waiting else CircuitStatus.HALF_OPEN


def counts(failure_class: FailureClass, failure: CallFailure) -> bool:
    """Whether a failure shows the provider to be unhealthy (the last column of the CLASS table).

    An `error_pre` is one whose code says nothing known; it counts like any failure that cannot be read.
    """
    return failure_class in _COUNTED and failure.kind is not FailureKind.CIRCUIT_OPEN


_COUNTED = frozenset(
    {FailureClass.TRANSIENT, FailureClass.UNAVAILABLE, FailureClass.ERROR_PRE, FailureClass.AUTH}
)
_with = msgspec.structs.replace
