"""The gate that every model call passes: circuit, place, circuit again, cache; and what the call came to."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from app.models.circuits import Circuits
from app.models.classifiers import Classifiers, Verdict
from app.models.places import Places
from app.models.port import ModelCallError, ModelReply
from app.models.response_cache import ResponseCache
from domain.breaker import Admitted, Rejected
from domain.failure import CallFailure, FailureKind

Call = Callable[[], Awaitable[ModelReply]]


class CallFailed(Exception):
    """The call failed, and this is what its failure is."""

    def __init__(self, failure: CallFailure, verdict: Verdict) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.verdict = verdict


class Gate:
    """Shared by all runs of a host. A call that is cancelled frees everything and counts for nothing."""

    def __init__(
        self,
        circuits: Circuits,
        classifiers: Classifiers,
        places: Places | None = None,
        cache: ResponseCache | None = None,
    ) -> None:
        self._circuits = circuits
        self._classifiers = classifiers
        self._places = places
        self._cache = cache

    async def call(
        self,
        provider: str,
        call: Call,
        *,
        cache_key: bytes | None = None,
        on_hit: Callable[[ModelReply], None] = lambda _: None,
        on_long_wait: Callable[[], None] = lambda: None,
    ) -> ModelReply:
        """Make the call when it may be made. Raise CallFailed, also when the circuit refuses it (BREAK-2).

        With a `cache_key`, a kept reply answers instead, but only through a circuit that lets calls through
        (BREAK-3); `on_hit` is told of it.
        """
        self._refuse(provider, self._circuits.refusal(provider))
        async with self._place(provider, on_long_wait):
            ticket = self._circuits.admit(provider)
            if isinstance(ticket, Rejected):
                raise self._refused(provider, ticket)
            return await self._admitted(provider, ticket, call, cache_key, on_hit)

    def _place(self, provider: str, on_long_wait: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        return _NO_PLACE if self._places is None else self._places.one(provider, on_long_wait)

    async def _admitted(
        self,
        provider: str,
        ticket: Admitted,
        call: Call,
        cache_key: bytes | None,
        on_hit: Callable[[ModelReply], None],
    ) -> ModelReply:
        settled = False
        try:
            if kept := self._kept(cache_key):
                on_hit(kept)
                return kept
            reply = await call()
            self._circuits.succeed(provider, ticket)
            settled = True
        except ModelCallError as error:
            verdict = self._classifiers.judge(provider, error.failure)
            self._circuits.fail(provider, ticket, verdict.failure_class, error.failure)
            settled = True
            raise CallFailed(error.failure, verdict) from error
        finally:
            if not settled:
                self._circuits.abandon(provider, ticket)
        if self._cache is not None and cache_key is not None:
            self._cache.keep(cache_key, reply)
        return reply

    def _kept(self, cache_key: bytes | None) -> ModelReply | None:
        if self._cache is None or cache_key is None:
            return None
        return self._cache.find(cache_key)

    def _refuse(self, provider: str, rejected: Rejected | None) -> None:
        if rejected is not None:
            raise self._refused(provider, rejected)

    def _refused(self, provider: str, rejected: Rejected) -> CallFailed:
        failure = CallFailure(
            kind=FailureKind.CIRCUIT_OPEN,
            message=f"the circuit of provider {provider} is open",
            retry_after_s=rejected.retry_after_s,
        )
        return CallFailed(failure, self._classifiers.judge(provider, failure))


_NO_PLACE: AbstractAsyncContextManager[None] = nullcontext()
