"""The circuits of this process, one per provider (BREAK-1)."""

import time
from collections.abc import Callable

import msgspec

from app.metrics import Metrics
from app.settings import CircuitBreakerSettings
from domain.breaker import (
    Admitted,
    BreakerPolicy,
    Circuit,
    CircuitStatus,
    Rejected,
    abandoned,
    admit,
    counts,
    failed,
    status_of,
    succeeded,
)
from domain.failure import CallFailure, FailureClass

_CLOSED = Circuit()


class ProviderHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A provider as this host's calls have shown it. `retry_after_s` is set while calls are refused."""

    provider: str
    circuit: CircuitStatus
    consecutive_failures: int
    retry_after_s: float | None


class Circuits:
    """Asked before each call, told how it went. Switched off, it lets everything through."""

    def __init__(
        self, settings: CircuitBreakerSettings, metrics: Metrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._enabled = settings.enabled
        self._policy = BreakerPolicy(
            failure_threshold=settings.failure_threshold, break_s=settings.break_duration
        )
        self._metrics = metrics
        self._clock = clock
        self._circuits: dict[str, Circuit] = {}

    def refusal(self, provider: str) -> Rejected | None:
        """Whether a call would be refused now. Takes nothing."""
        circuit = self._circuits.get(provider)
        if circuit is None or circuit.opened_at is None or not self._enabled:
            return None
        verdict = admit(circuit, self._policy, self._clock())
        return verdict if isinstance(verdict, Rejected) else None

    def admit(self, provider: str) -> Admitted | Rejected:
        """Let a call through or not. The ticket comes back to `succeed`, `fail` or `abandon`."""
        circuit = self._circuits.get(provider, _CLOSED)
        if not self._enabled:
            return Admitted(circuit=circuit, probe=False, era=circuit.era)
        verdict = admit(circuit, self._policy, self._clock())
        if isinstance(verdict, Admitted):
            self._put(provider, verdict.circuit)
        return verdict

    def succeed(self, provider: str, ticket: Admitted) -> None:
        """The provider answered."""
        circuit = self._circuits.get(provider, _CLOSED)
        if circuit is not _CLOSED:
            self._put(provider, succeeded(circuit, ticket))

    def fail(
        self, provider: str, ticket: Admitted, failure_class: FailureClass, failure: CallFailure
    ) -> None:
        """The call failed. Whether that says something about the provider is in the CLASS table."""
        if not self._enabled:
            return
        circuit = self._circuits.get(provider, _CLOSED)
        if counts(failure_class, failure):
            self._put(provider, failed(circuit, ticket, self._policy, self._clock()))
        else:
            self._put(provider, abandoned(circuit, ticket))

    def abandon(self, provider: str, ticket: Admitted) -> None:
        """The call was cancelled: neither success nor failure (BREAK-4)."""
        if circuit := self._circuits.get(provider):
            self._put(provider, abandoned(circuit, ticket))

    def health(self, provider: str) -> ProviderHealth:
        """For people."""
        circuit, now = self._circuits.get(provider, _CLOSED), self._clock()
        refused = self.refusal(provider)
        return ProviderHealth(
            provider=provider,
            circuit=status_of(circuit, self._policy, now),
            consecutive_failures=circuit.failures,
            retry_after_s=refused.retry_after_s if refused else None,
        )

    def _put(self, provider: str, circuit: Circuit) -> None:
        before = self._circuits.get(provider, _CLOSED)
        self._circuits[provider] = circuit
        if before.opened_at != circuit.opened_at:
            self._metrics.circuit_open.labels(provider).set(0 if circuit.opened_at is None else 1)
            if circuit.opened_at is not None:
                self._metrics.circuit_opened.labels(provider).inc()
