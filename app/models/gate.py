"""The gate that every model call passes: circuit, place, circuit again, cache; and what the call came to."""

import asyncio
from collections.abc import Awaitable, Callable

from prometheus_client import Gauge

from app.models.accounts import Account
from app.models.circuits import Circuits
from app.models.classifiers import Classifiers
from app.models.places import Places
from app.models.port import ModelCallError, ModelReply, StillSilent
from app.models.response_cache import ResponseCache
from domain.breaker import Admitted
from domain.chain.policy import Verdict
from domain.failure import CallFailure

Call = Callable[[], Awaitable[ModelReply]]


class CallFailed(Exception):
    """The call failed, and this is what its failure is."""

    def __init__(self, failure: CallFailure, verdict: Verdict) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.verdict = verdict


class CallOverdue(asyncio.CancelledError):
    """The call was cancelled because it had no answer when there was no time left, and this is what that is.

    It is still a cancellation: whoever has taken note of it raises a bare one in its place.
    """

    def __init__(self, failure: CallFailure, verdict: Verdict) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.verdict = verdict


def _nothing(*_: object) -> None:
    return None


class Gate:
    """Shared by all runs of a host.

    A call that is cancelled frees everything and counts for nothing, unless it was too late by then.
    """

    def __init__(
        self,
        circuits: Circuits,
        classifiers: Classifiers,
        places: Places | None = None,
        cache: ResponseCache | None = None,
        live: Gauge | None = None,
    ) -> None:
        """`live` counts the calls that are under way, by provider."""
        self._circuits = circuits
        self._classifiers = classifiers
        self._places = places
        self._cache = cache
        self._live = live

    async def call(
        self,
        account: Account,
        call: Call,
        *,
        cache_key: bytes | None = None,
        on_hit: Callable[[ModelReply], None] = _nothing,
        on_long_wait: Callable[[], None] = _nothing,
        overdue: Callable[[], CallFailure | None] = _nothing,
    ) -> ModelReply:
        """Make the call when it may be made. Raise CallFailed, or ProviderUnavailable when none was made.

        With a `cache_key`, a kept reply answers instead, but only through a circuit that lets calls through
        (BREAK-3); `on_hit` is told of it. `overdue` is asked what a call is that was cancelled before any
        of its answer came: a failure, which ends in CallOverdue, or nothing, as for every caller who left.
        """
        self._circuits.check(account)
        if self._places is None:  # no limit costs nothing (CONC-1)
            return await self._pass(account, call, cache_key, on_hit, overdue)
        await self._places.take(account, on_long_wait)
        try:
            return await self._pass(account, call, cache_key, on_hit, overdue)
        finally:
            self._places.give_back(account)

    async def _pass(
        self,
        account: Account,
        call: Call,
        cache_key: bytes | None,
        on_hit: Callable[[ModelReply], None],
        overdue: Callable[[], CallFailure | None],
    ) -> ModelReply:
        ticket = self._circuits.admit(account)  # it may have opened while this call waited
        try:
            if kept := self._kept(cache_key):
                on_hit(kept)
                return kept
            reply = await self._made(account, call)
        except ModelCallError as error:
            raise CallFailed(error.failure, self._judge(account, ticket, error.failure)) from error
        except StillSilent as cancelled:
            if (failure := overdue()) is not None:
                raise CallOverdue(failure, self._judge(account, ticket, failure)) from cancelled
            # Bare: the timeouts of Python 3.11 take a subclass of it for somebody else's error.
            raise asyncio.CancelledError from cancelled
        else:
            self._circuits.succeed(account, ticket)
        finally:
            self._circuits.abandon(account, ticket)  # a ticket that has been brought back is void
        if self._cache is not None and cache_key is not None:
            self._cache.keep(cache_key, reply)
        return reply

    async def _made(self, account: Account, call: Call) -> ModelReply:
        if self._live is None:
            return await call()
        live = self._live.labels(account.provider)
        live.inc()
        try:
            return await call()
        finally:
            live.dec()

    def _judge(self, account: Account, ticket: Admitted, failure: CallFailure) -> Verdict:
        """What the failure is. The circuit is told."""
        verdict = self._classifiers.judge(account.provider, failure)
        self._circuits.fail(account, ticket, verdict.failure_class, failure)
        return verdict

    def _kept(self, cache_key: bytes | None) -> ModelReply | None:
        if self._cache is None or cache_key is None:
            return None
        return self._cache.find(cache_key)
