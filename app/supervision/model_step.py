"""One step's model calls: along the chain until a link answers or none is left (CHAIN)."""

import asyncio
from decimal import Decimal
from functools import partial
from time import perf_counter

from app.faults import fault_point
from app.models.accounts import Account
from app.models.gate import CallFailed, CallOverdue
from app.models.port import MaySend, ModelReply, ModelRequest
from app.models.response_cache import cache_key
from app.supervision.compaction_step import fixed_tokens
from app.supervision.live_run import LiveRun
from app.supervision.model_call import call_model, timed
from app.supervision.model_request import request_for, tools_of
from app.supervision.ownership import call_as_owner
from app.supervision.step_text import StepText
from app.supervision.turn_chain import TurnChain
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition, Link
from domain.breaker import ProviderUnavailable
from domain.budget import Charge, estimate_of
from domain.chain.policy import Retry, Verdict
from domain.commands import BeginModelCall, RecordModelFailure, RecordQueueing, RecordReply
from domain.compaction import context_tokens
from domain.failure import CallFailure, FailureClass, FailureKind, RunError, silence_until_deadline
from domain.messages import AssistantMessage, Usage
from domain.pricing import cost_of

_COMPANY_S = 0.01
"""That a call has begun, and what it replied, may wait so long for what follows. It saves appends."""
_REFUSED = Verdict(failure_class=FailureClass.UNAVAILABLE)


class ModelStep:
    """Performs the model calls of one run."""

    def __init__(self, live: LiveRun, bench: Workbench, definition: AgentDefinition) -> None:
        self._live = live
        self._bench = bench
        self._definition = definition
        self._chain = TurnChain(live, bench, definition)
        self._text = StepText(live, bench.recording)
        self._fixed_tokens = fixed_tokens(definition, tools_of(live.tenant, bench, definition))
        self._cached = False
        self._began = 0.0
        self.waiting_at: str | None = None
        """The provider at which a call was waiting for a place when this step was last heard of."""

    def estimate(self) -> Charge:
        """What the next step is expected to spend, at the link that the turn is at."""
        prompt = context_tokens(self._live.run, self._live.session.messages, self._fixed_tokens)
        limit = self._definition.options.max_output_tokens
        return estimate_of(prompt, limit, self._bench.prices.get(self._chain.link))

    async def perform(self, step: int) -> RunError | None:
        """Get the step's reply from the chain. Return the error that ends the run, if there is none.

        It also returns, without a reply, when the turn begins again: what the next link is shown is to be
        decided anew.
        """
        self._text.begin_step(step)
        error = self._chain.begin()
        while error is None:
            link = self._chain.link
            try:
                reply = await self._call(step)
            except ProviderUnavailable as refused:
                error = await self._after(step, _REFUSED, refused.failure)
            except CallFailed as failed:
                error = await self._after(step, failed.verdict, failed.failure)
            except CallOverdue as overdue:
                self._record_failure(step, overdue.verdict, overdue.failure)
                raise asyncio.CancelledError from overdue
            else:
                self._replied(step, reply)
                return None
            if self._chain.begins_again(link):
                break
        return error

    async def _call(self, step: int) -> ModelReply:
        link = self._chain.link
        begin_call = BeginModelCall(step=step, provider=link.provider, model=link.model)
        self._live.execute(begin_call, within_s=_COMPANY_S)
        if step > 1:
            await self._live.flush()  # results that the model is about to read must be kept first (EVENT-2)
        request = request_for(self._live, self._bench, self._definition, self._chain.state, self._text.so_far)
        key = cache_key(self._live.tenant, link.provider, request) if self._definition.cache_replies else None
        self._cached, self.waiting_at = False, link.provider
        account = self._bench.accounts.of(link.provider, self._live.tenant)
        return await self._bench.gate.call(
            account,
            partial(self._attempt, link, account, request),
            cache_key=key,
            on_hit=self._hit,
            on_long_wait=partial(self._live.note, RecordQueueing(step=step)),
            overdue=self._overdue,
        )

    async def _attempt(self, link: Link, account: Account, request: ModelRequest) -> ModelReply:
        fault_point("model.call.before")
        self.waiting_at = None
        return await call_as_owner(self._live, self._bench, partial(self._made, link, account, request))

    async def _made(
        self, link: Link, account: Account, request: ModelRequest, may_send: MaySend
    ) -> ModelReply:
        self._text.begin_call()
        self._began = perf_counter()
        tell = self._text.tell if self._live.streaming else None
        adapter = self._bench.accounts.adapter(account)
        with timed(self._bench.metrics, link):
            try:
                return await call_model(adapter, request, self._text.so_far, tell, may_send)
            finally:
                self._text.end_call()

    def _hit(self, reply: ModelReply) -> None:
        """A kept reply answers. Whoever watches hears it like any other (BREAK-3)."""
        self._cached, self.waiting_at = True, None
        self._text.begin_call()
        if self._live.streaming:
            self._text.tell(reply.message.content)
        self._text.end_call()

    def _replied(self, step: int, reply: ModelReply) -> None:
        link, message = self._chain.link, reply.message
        if self._text.carried:
            # What its provider keeps of the reply has the last part of the text only.
            whole = self._text.carried + message.content
            message = AssistantMessage(content=whole, tool_calls=message.tool_calls)
        self._live.execute(
            RecordReply(
                step=step,
                message=message,
                finish=reply.finish,
                usage=Usage() if self._cached else reply.usage,
                cost=Decimal(0) if self._cached else cost_of(reply.usage, self._bench.prices.get(link)),
                currency=self._bench.currency,
                cached=self._cached,
            ),
            within_s=_COMPANY_S,  # what follows from it, the run's end or a tool call, goes down with it
        )
        self._chain.answered(streamed=self._live.streaming and bool(message.content))
        if self._cached:
            self._bench.metrics.cached_replies.labels(link.provider, link.model).inc()
        else:
            self._bench.metrics.count_reply(link.provider, link.model, reply.usage)

    async def _after(self, step: int, verdict: Verdict, failure: CallFailure) -> RunError | None:
        """Record the failure and what follows from it; wait if that is a retry."""
        self._record_failure(step, verdict, failure)
        outcome, error = self._chain.after(verdict, failure)
        if failure.content_delivered and error is None:
            self._text.carry_on()
        if isinstance(outcome, Retry):
            await asyncio.sleep(outcome.wait_s)
        return error

    def _record_failure(self, step: int, verdict: Verdict, failure: CallFailure) -> None:
        link, failure_class = self._chain.link, verdict.failure_class
        self.waiting_at = None
        text = self._text.shown_only if failure.content_delivered else ""
        self._live.execute(
            RecordModelFailure(step=step, failure_class=failure_class, failure=failure, text=text)
        )
        if failure.kind is not FailureKind.CIRCUIT_OPEN:  # no call was made
            self._bench.metrics.model_calls.labels(link.provider, link.model, failure_class).inc()

    def _overdue(self) -> CallFailure | None:
        """What a silent call is that is being cancelled. A caller who leaves early says nothing by that."""
        if self._live.remaining_s > 0:
            return None
        return silence_until_deadline(perf_counter() - self._began, self._bench.turn.timeout)
