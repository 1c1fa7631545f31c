"""The circuits of this process: one for each provider, and each key that a tenant has there (BREAK-1)."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from app.metrics import Metrics
from app.models.accounts import Account
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
    key: Literal["shared", "own"]
    """With whose key the calls were made: the provider's, or one of the tenant that asks."""
    circuit: CircuitStatus
    consecutive_failures: int
    retry_after_s: float | None


class Circuits:
    """Asked before each call, told how it went. Switched off, it lets everything through.

    `accounts` are those whose state is shown before anything has happened to it.
    """

    def __init__(
        self,
        settings: CircuitBreakerSettings,
        metrics: Metrics,
        accounts: Iterable[Account] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._enabled = settings.enabled
        self._policy = BreakerPolicy(
            failure_threshold=settings.failure_threshold,
            break_s=settings.break_duration,
            probe_patience_s=settings.probe_patience,
        )
        self._metrics = metrics
        self._clock = clock
        self._circuits: dict[Account, Circuit] = {}
        for account in accounts:
            open_now = metrics.tenant_circuits_open if account.tenant else metrics.circuit_open
            open_now.labels(account.provider).set(0)
            metrics.circuit_opened.labels(account.provider)

    def check(self, account: Account) -> None:
        """Raise ProviderUnavailable if a call would be refused now. Takes nothing."""
        if (refused := self._refusal(account)) is not None:
            raise self._refused(account, refused)

    def admit(self, account: Account) -> Admitted:
        """Let a call through or raise ProviderUnavailable (BREAK-2).

        The ticket comes back to `succeed`, `fail` or `abandon`. Once it is back, it does nothing any more.
        """
        circuit = self._circuits.get(account, _CLOSED)
        if not self._enabled or circuit is _CLOSED:
            return _PASS
        verdict = admit(circuit, self._policy, self._clock())
        if isinstance(verdict, Rejected):
            raise self._refused(account, verdict)
        self._put(account, verdict.circuit)
        return verdict

    def succeed(self, account: Account, ticket: Admitted) -> None:
        """The provider answered."""
        circuit = self._circuits.get(account, _CLOSED)
        if circuit.failures or circuit.opened_at is not None:
            self._put(account, succeeded(circuit, ticket))

    def fail(
        self, account: Account, ticket: Admitted, failure_class: FailureClass, failure: CallFailure
    ) -> None:
        """The call failed. Whether that says something about the provider is in the CLASS table."""
        if not self._enabled:
            return
        circuit = self._circuits.get(account, _CLOSED)
        if counts(failure_class, failure):
            self._put(account, failed(circuit, ticket, self._policy, self._clock()))
        else:
            self._put(account, abandoned(circuit, ticket))

    def abandon(self, account: Account, ticket: Admitted) -> None:
        """The call was cancelled, or not made: neither success nor failure (BREAK-4)."""
        if ticket.probe:
            self._put(account, abandoned(self._circuits.get(account, _CLOSED), ticket))

    def health(self, account: Account) -> ProviderHealth:
        """For people."""
        circuit, refused = self._circuits.get(account, _CLOSED), self._refusal(account)
        return ProviderHealth(
            provider=account.provider,
            key="own" if account.tenant else "shared",
            circuit=status_of(circuit, self._policy, self._clock()),
            consecutive_failures=circuit.failures,
            retry_after_s=refused.retry_after_s if refused else None,
        )

    def _refusal(self, account: Account) -> Rejected | None:
        circuit = self._circuits.get(account, _CLOSED)
        if circuit.opened_at is None or not self._enabled:
            return None
        verdict = admit(circuit, self._policy, self._clock())
        return verdict if isinstance(verdict, Rejected) else None

    def _refused(self, account: Account, rejected: Rejected) -> ProviderUnavailable:
        self._metrics.circuit_refused.labels(account.provider).inc()
        return ProviderUnavailable(account.provider, rejected.retry_after_s)

    def _put(self, account: Account, circuit: Circuit) -> None:
        before = self._circuits.get(account, _CLOSED)
        self._circuits[account] = circuit
        if before.opened_at != circuit.opened_at:
            self._tell(account, before.opened_at is not None, circuit)

    def _tell(self, account: Account, was_open: bool, circuit: Circuit) -> None:
        """Tenants are no labels: of their circuits only the number is told, and the log has the names."""
        is_open, provider = circuit.opened_at is not None, account.provider
        if account.tenant:
            self._metrics.tenant_circuits_open.labels(provider).inc(is_open - was_open)
        else:
            self._metrics.circuit_open.labels(provider).set(is_open)
        whose = {"provider": provider} | ({"tenant": account.tenant} if account.tenant else {})
        if is_open:
            self._metrics.circuit_opened.labels(provider).inc()
            log.warning("circuit.opened", extra=whose | {"failures": circuit.failures})
        else:
            log.info("circuit.closed", extra=whose)
