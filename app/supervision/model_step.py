"""One step's model calls: along the chain until a link answers or none is left, each move on record."""

import asyncio
import random
from contextlib import suppress
from decimal import Decimal
from functools import partial
from time import perf_counter

import msgspec

from app.db.errors import StoreUnavailable
from app.faults import fault_point
from app.models.gate import CallFailed
from app.models.port import ModelReply, ModelRequest
from app.models.response_cache import cache_key
from app.store.stream_writer import Fenced
from app.supervision.delta_window import DeltaWindow
from app.supervision.live_run import LiveRun
from app.supervision.model_call import complete, stream, to_carry_on
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition, Link, StreamRecovery
from domain.chain import ChainState, NextLink, Retry, Stop, after, answered, begin
from domain.chain_record import commands_for
from domain.commands import (
    BeginModelCall,
    FailRun,
    RecordModelFailure,
    RecordQueueing,
    RecordReply,
    RecordText,
)
from domain.events import TextDelta
from domain.failure import RunError
from domain.messages import Usage
from domain.pricing import cost_of
from domain.seam import Seam


_COMPANY_S = 0.01
"""That a call has begun may wait so long for what comes of it: a fast answer then costs one append less."""


class ModelStep:
    """Performs the model calls of one run. Its place in the chain lasts as long as the turn (CHAIN-6)."""

    def __init__(self, live: LiveRun, bench: Workbench, definition: AgentDefinition) -> None:
        self._live = live
        self._bench = bench
        self._definition = definition
        self._chain: ChainState | None = None
        self._carried = ""
        """The step's text that was told before its link broke off, for the next link to carry on."""
        self._told = ""
        self._cached = False

    async def perform(self, step: int) -> RunError | None:
        """Get the step's reply from the chain. Return the error that ends the run, if there is none."""
        self._carried = self._told = ""
        error = self._begin() if self._chain is None else None
        while error is None:
            try:
                reply = await self._call(step)
            except CallFailed as failed:
                error = await self._after(step, failed)
            else:
                self._replied(step, reply)
                return None
        return error

    @property
    def _state(self) -> ChainState:
        if self._chain is None:
            raise RuntimeError("the chain has not begun")
        return self._chain

    @property
    def _text_so_far(self) -> str:
        """What the next call carries on: a text that its output limit ended, or one whose link broke off."""
        return self._live.run.unfinished_text + self._carried

    def _begin(self) -> RunError | None:
        """Select the link that the turn begins with (CHAIN-4)."""
        definition = self._definition
        self._chain = ChainState(
            links=tuple(self._bench.chain_link(link) for link in definition.links),
            needs_tools=bool(definition.tools),
            mode=definition.fallback_mode,
        )
        outcome = begin(self._chain)
        return None if isinstance(outcome, ChainState) else self._move(outcome)

    async def _call(self, step: int) -> ModelReply:
        link = self._state.link
        begin_call = BeginModelCall(step=step, provider=link.provider, model=link.model)
        self._live.execute(begin_call, within_s=_COMPANY_S)
        if step > 1:
            await self._live.flush()  # results that the model is about to read must be kept first (EVENT-2)
        request = self._request(link)
        key = cache_key(self._live.tenant, link.provider, request) if self._definition.cache_replies else None
        self._cached = False
        return await self._bench.gate.call(
            link.provider,
            partial(self._attempt, step, link, request),
            cache_key=key,
            on_hit=partial(self._hit, step),
            on_long_wait=partial(self._queueing, step),
        )

    async def _attempt(self, step: int, link: Link, request: ModelRequest) -> ModelReply:
        fault_point("model.call.before")
        adapter = self._bench.adapters[link.provider]
        seam = Seam(self._text_so_far)
        began = perf_counter()
        try:
            if not self._live.streaming:
                return await complete(adapter, request, seam)
            window = DeltaWindow(
                partial(self._tell, step),
                window_s=self._bench.recording.delta_window,
                max_bytes=self._bench.recording.delta_bytes,
            )
            return await stream(adapter, request, seam, window, self._hear)
        finally:
            took_s = perf_counter() - began
            self._bench.metrics.model_call_seconds.labels(link.provider, link.model).observe(took_s)
            fault_point("model.call.after")

    def _replied(self, step: int, reply: ModelReply) -> None:
        link = self._state.link
        message = reply.message
        if self._carried:
            message = msgspec.structs.replace(message, content=self._carried + message.content)
        self._live.execute(
            RecordReply(
                step=step,
                message=message,
                finish=reply.finish,
                usage=Usage() if self._cached else reply.usage,
                cost=Decimal(0) if self._cached else cost_of(reply.usage, self._bench.prices.get(link)),
                currency=self._bench.currency,
                cached=self._cached,
            )
        )
        self._chain = answered(self._state, streamed=self._live.streaming and bool(message.content))
        if not self._cached:
            self._bench.metrics.count_reply(link.provider, link.model, reply.usage)

    async def _after(self, step: int, failed: CallFailed) -> RunError | None:
        """Record the failure and what follows from it; wait if that is a retry."""
        link, verdict, failure = self._state.link, failed.verdict, failed.failure
        self._live.execute(
            RecordModelFailure(step=step, failure_class=verdict.failure_class, failure=failure)
        )
        self._bench.metrics.model_calls.labels(link.provider, link.model, verdict.failure_class).inc()
        outcome = after(
            self._state,
            verdict.failure_class,
            failure,
            larger_window=verdict.larger_window,
            recover=self._definition.stream_recovery is StreamRecovery.CONTINUE,
            remaining_s=self._live.remaining_s,
            random=random.random(),  # noqa: S311 - jitter, not a secret
        )
        error = self._move(outcome)
        if isinstance(outcome, NextLink) and failure.content_delivered:
            self._carried += self._told
        self._told = ""
        if isinstance(outcome, Retry):
            await asyncio.sleep(outcome.wait_s)
        return error

    def _move(self, outcome: Retry | NextLink | Stop) -> RunError | None:
        self._chain = outcome.state
        for command in commands_for(outcome):
            if isinstance(command, FailRun):
                return command.error
            self._live.execute(command)
        if isinstance(outcome, NextLink):
            primary = self._definition.links[0]
            self._bench.metrics.fallbacks.labels(str(primary), str(outcome.state.link)).inc()
        return None

    def _request(self, link: Link) -> ModelRequest:
        definition, last = self._definition, self._state.position + 1 == len(self._state.links)
        messages = self._live.conversation
        if text := self._text_so_far:
            prefill = self._state.links[self._state.position].supports_prefill
            messages = to_carry_on(messages, text, prefill=prefill)
        return ModelRequest(
            model=link.model,
            instructions=definition.instructions,
            messages=messages,
            tools=self._bench.tools.specs(definition.tools),
            options=definition.options,
            response_schema=definition.response_schema,
            # They configure the primary's client and would mean nothing to another (CHAIN-5).
            provider_settings=definition.provider_settings if link == definition.links[0] else {},
            # The last link left has all the time that the run has (CLASS-2).
            first_content_timeout_s=None if last else self._bench.chain.first_content_timeout,
        )

    def _hit(self, step: int, reply: ModelReply) -> None:
        self._cached = True
        if self._live.streaming and reply.message.content:
            self._tell(step, reply.message.content)

    def _hear(self, text: str) -> None:
        self._told += text

    def _tell(self, step: int, text: str) -> None:
        # A lost pen tells the actor itself; a timer must not raise.
        with suppress(Fenced, StoreUnavailable):
            if self._bench.recording.deltas == "live":
                self._live.show(TextDelta(step=step, text=text))
            else:
                self._live.execute(RecordText(step=step, text=text))

    def _queueing(self, step: int) -> None:
        with suppress(Fenced, StoreUnavailable):
            self._live.execute(RecordQueueing(step=step))
