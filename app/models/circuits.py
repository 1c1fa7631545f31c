"""The circuits of this process, one per provider (BREAK-1)."""

import logging
import time
from collections.abc import Callable, Iterable

import msgspec

from app.metrics import Metrics
from app.settings import CircuitBreakerSettings
from domain.breaker import (
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
from domain.failure import CallFailure, FailureClass

log = logging.getLogger(__name__)

_CLOSED = Circuit()
_PASS = Admitted(circuit=_CLOSED, probe=False, era=_CLOSED.era)


class ProviderHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A provider as this host's calls have shown it. `retry_after_s` is set while calls are refused."""

    provider: str
    circuit: CircuitStatus
    consecutive_failures: int
    retry_after_s: float | None


class Circuits:
    """Asked before each call, told how it went. Switched off, it lets everything through.

    `providers` are those whose state is shown before anything has happened to it.
    """

    def __init__(
        self,
        settings: CircuitBreakerSettings,
        metrics: Metrics,
        providers: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._enabled = settings.enabled
        self._policy = BreakerPolicy(
            failure_threshold=settings.failure_threshold, break_s=settings.break_duration
        )
        self._metrics = metrics
        self._clock = clock
        self._circuits: dict[str, Circuit] = {}
        for provider in providers:
            metrics.circuit_open.labels(provider).set(0)
            metrics.circuit_opened.labels(provider)

    def check(self, provider: str) -> None:
        """Raise ProviderUnavailable if a call would be refused now. Takes nothing."""
        if (refused := self._refusal(provider)) is not None:
            raise self._refused(provider, refused)

    def admit(self, provider: str) -> Admitted:
        """Let a call through or raise ProviderUnavailable (BREAK-2).

        The ticket comes back to `succeed`, `fail` or `abandon`. Once it is back, it does nothing any more.
        """
        circuit = self._circuits.get(provider, _CLOSED)
        if not self._enabled or circuit is _CLOSED:
            return _PASS
        verdict = admit(circuit, self._policy, self._clock())
        if isinstance(verdict, Rejected):
            raise self._refused(provider, verdict)
        self._put(provider, verdict.circuit)
        return verdict

    def succeed(self, provider: str, ticket: Admitted) -> None:
        """The provider answered."""
        circuit = self._circuits.get(provider, _CLOSED)
        if circuit.failures or circuit.opened_at is not None:
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
        """The call was cancelled, or not made: neither success nor failure (BREAK-4)."""
        if ticket.probe:
            self._put(provider, abandoned(self._circuits.get(provider, _CLOSED), ticket))

    def health(self, provider: str) -> ProviderHealth:
        """For people."""
        circuit, refused = self._circuits.get(provider, _CLOSED), self._refusal(provider)
        return ProviderHealth(
            provider=provider,
            circuit=status_of(circuit, self._policy, self._clock()),
            consecutive_failures=circuit.failures,
            retry_after_s=refused.retry_after_s if refused else None,
        )

    def _refusal(self, provider: str) -> Rejected | None:
        circuit = self._circuits.get(provider, _CLOSED)
        if circuit.opened_at is None or not self._enabled:
            return None
        verdict = admit(circuit, self._policy, self._clock())
        return verdict if isinstance(verdict, Rejected) else None

    def _refused(self, provider: str, rejected: Rejected) -> ProviderUnavailable:
        self._metrics.circuit_refused.labels(provider).inc()
        return ProviderUnavailable(provider, rejected.retry_after_s)

    def _put(self, provider: str, circuit: Circuit) -> None:
        before = self._circuits.get(provider, _CLOSED)
        self._circuits[provider] = circuit
        if before.opened_at != circuit.opened_at:
            self._tell(provider, circuit)

    def _tell(self, provider: str, circuit: Circuit) -> None:
        is_open = circuit.opened_at is not None
        self._metrics.circuit_open.labels(provider).set(is_open)
        if is_open:
            self._metrics.circuit_opened.labels(provider).inc()
            log.warning("circuit.opened", extra={"provider": provider, "failures": circuit.failures})
        else:
            log.info("circuit.closed", extra={"provider": provider})
