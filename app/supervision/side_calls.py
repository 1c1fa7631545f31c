"""Calls of models besides the agent's own, on a binding with fallbacks of its own (CHAIN-13)."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from time import perf_counter
from typing import TypeVar

from app.faults import fault_point
from app.models.accounts import Account
from app.models.gate import CallFailed, CallOverdue
from app.models.port import MaySend, ModelReply, ModelRequest
from app.models.response_cache import cache_key
from app.supervision.live_run import LiveRun
from app.supervision.model_call import call_model, timed
from app.supervision.ownership import call_as_owner
from app.supervision.side_chain import SideChain
from app.supervision.side_request import SideQuestion, request_for
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition, Binding, Link
from domain.breaker import ProviderUnavailable
from domain.budget import Charge, estimate_of
from domain.chain.policy import Verdict
from domain.commands.side import (
    BeginSideCall,
    RecordSideFailure,
    RecordSideQueueing,
    RecordSideReply,
)
from domain.events.side import SidePurpose
from domain.failure import CallFailure, FailureClass, FailureKind, RunError, silence_until_deadline
from domain.messages import Usage
from domain.pricing import cost_of
from domain.written import tokens_in

T = TypeVar("T")

_COMPANY_S = 0.01
"""That a call has begun may wait so long for what comes of it: a fast answer then costs one append less."""
_REFUSED = Verdict(failure_class=FailureClass.UNAVAILABLE)
_OF_NO_USE = Verdict(failure_class=FailureClass.EMPTY)
"""A reply without what was asked for is tried once more, then on the next link; no circuit hears of it."""


class SideCalls:
    """Asks for one purpose, as long as the run lives: a link that was left is not tried again.

    What happens on the way is on record in events of its own kind, and the agent's chain knows nothing of it.
    """

    def __init__(
        self,
        live: LiveRun,
        bench: Workbench,
        definition: AgentDefinition,
        purpose: SidePurpose,
        binding: Binding,
    ) -> None:
        self._live = live
        self._bench = bench
        self._caches = definition.cache_replies
        self._purpose = purpose
        self._options = binding.options
        self._chain = SideChain(live, bench, purpose, binding)
        self._cached = False
        self._began = 0.0
        self.waiting_at: str | None = None
        """The provider at which a call was waiting for a place when this was last heard of."""

    async def ask(self, asked: SideQuestion, read: Callable[[str], T]) -> T | RunError:
        """What `read` makes of a reply, or why no link has one. `read` raises ValueError where it has no use.

        Everything recorded so far is committed first: a model is about to read it (EVENT-2).
        """
        await self._live.flush()
        while True:
            try:
                reply = await self._call(asked)
            except ProviderUnavailable as refused:
                error = await self._after_failure(_REFUSED, refused.failure)
            except CallFailed as failed:
                error = await self._after_failure(failed.verdict, failed.failure)
            except CallOverdue as overdue:
                self._record_failure(overdue.verdict, overdue.failure)
                raise asyncio.CancelledError from overdue
            else:
                found = self._read(reply, read)
                if not isinstance(found, CallFailure):
                    return found
                error = await self._chain.after(_OF_NO_USE, found)
            if error is not None:
                return error

    def estimate(self, asked: SideQuestion) -> Charge:
        """What a call is expected to spend, at the link that is called now."""
        prompt = tokens_in(asked.instructions) + tokens_in(asked.material)
        price = self._bench.prices.get(self._chain.link)
        return estimate_of(prompt, self._options.max_output_tokens, price)

    def give_up(self, failure: CallFailure) -> None:
        """The call in flight was not waited for. Nobody knows better than this what became of it."""
        self.waiting_at = None
        if self._live.run.beside.calling is not None:
            self._live.execute(RecordSideFailure(failure_class=FailureClass.INTERNAL, failure=failure))

    async def _call(self, asked: SideQuestion) -> ModelReply:
        link, live = self._chain.link, self._live
        begin = BeginSideCall(purpose=self._purpose, provider=link.provider, model=link.model)
        live.execute(begin, within_s=_COMPANY_S)
        request = request_for(asked, self._options, self._chain.state, self._bench.chain)
        account = self._bench.accounts.of(link.provider, live.tenant)
        # A reply that was of no use may be kept, and is not to be had again.
        caches = self._caches and live.run.beside.attempts == 1
        key = cache_key(live.tenant, link.provider, request) if caches else None
        self._cached, self.waiting_at = False, link.provider
        return await self._bench.gate.call(
            account,
            partial(self._attempt, link, account, request),
            cache_key=key,
            on_hit=self._hit,
            on_long_wait=partial(live.note, RecordSideQueueing()),
            overdue=self._overdue,
        )

    async def _attempt(self, link: Link, account: Account, request: ModelRequest) -> ModelReply:
        fault_point("model.call.before")
        self.waiting_at = None
        return await call_as_owner(self._live, self._bench, partial(self._made, link, account, request))

    async def _made(
        self, link: Link, account: Account, request: ModelRequest, may_send: MaySend
    ) -> ModelReply:
        self._began = perf_counter()
        with timed(self._bench.metrics, link):
            return await call_model(self._bench.accounts.adapter(account), request, "", None, may_send)

    def _hit(self, _: ModelReply) -> None:
        self._cached, self.waiting_at = True, None

    def _read(self, reply: ModelReply, read: Callable[[str], T]) -> T | CallFailure:
        """Put the reply on record, with what is wrong with it."""
        try:
            found = read(reply.message.content)
        except ValueError as flaw:
            self._replied(reply, str(flaw))
            return CallFailure(kind=FailureKind.EMPTY, message=str(flaw))
        self._replied(reply, None)
        self._chain.answered()
        return found

    def _replied(self, reply: ModelReply, flaw: str | None) -> None:
        link, metrics = self._chain.link, self._bench.metrics
        self._live.execute(
            RecordSideReply(
                usage=Usage() if self._cached else reply.usage,
                cost=Decimal(0) if self._cached else cost_of(reply.usage, self._bench.prices.get(link)),
                currency=self._bench.currency,
                cached=self._cached,
                flaw=flaw,
            )
        )
        if self._cached:
            metrics.cached_replies.labels(link.provider, link.model).inc()
        else:
            metrics.count_reply(link.provider, link.model, reply.usage)

    def _overdue(self) -> CallFailure | None:
        """What a silent call is that is being cancelled. A caller who leaves early says nothing by that."""
        if self._live.remaining_s > 0:
            return None
        return silence_until_deadline(perf_counter() - self._began, self._bench.turn.timeout)

    async def _after_failure(self, verdict: Verdict, failure: CallFailure) -> RunError | None:
        self._record_failure(verdict, failure)
        return await self._chain.after(verdict, failure)

    def _record_failure(self, verdict: Verdict, failure: CallFailure) -> None:
        link, failure_class = self._chain.link, verdict.failure_class
        self.waiting_at = None
        self._live.execute(RecordSideFailure(failure_class=failure_class, failure=failure))
        if failure.kind is not FailureKind.CIRCUIT_OPEN:  # no call was made
            self._bench.metrics.model_calls.labels(link.provider, link.model, failure_class).inc()
