"""One step's model call: the right request, its text to whoever watches, its outcome on record."""

from contextlib import aclosing, suppress
from time import perf_counter

from app.db.errors import StoreUnavailable
from app.faults import fault_point
from app.models.port import ModelCallError, ModelReply, ModelRequest, TextChunk
from app.store.stream_writer import Fenced
from app.supervision.delta_window import DeltaWindow
from app.supervision.live_run import LiveRun
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition, Link
from domain.commands import BeginModelCall, RecordModelFailure, RecordReply, RecordText
from domain.events import TextDelta
from domain.failure import CallFailure, FailureKind, RunError, classify, error_of
from domain.pricing import cost_of


class ModelStep:
    """Performs the model calls of one run."""

    def __init__(self, live: LiveRun, bench: Workbench, definition: AgentDefinition) -> None:
        self._live = live
        self._bench = bench
        self._definition = definition

    async def perform(self, step: int) -> RunError | None:
        """Make the call of this step. Return the error that ends the run, if it failed for good."""
        link = self._definition.links[0]
        self._live.execute(BeginModelCall(step=step, provider=link.provider, model=link.model))
        if step > 1:
            await self._live.flush()  # results that the model is about to read must be kept first (EVENT-2)
        fault_point("model.call.before")
        began = perf_counter()
        try:
            reply = await self._call(step, link)
        except ModelCallError as error:
            return self._failed(step, link, error.failure)
        finally:
            self._bench.metrics.model_call_seconds.labels(link.provider, link.model).observe(
                perf_counter() - began
            )
        fault_point("model.call.after")
        self._replied(step, link, reply)
        return None

    def _replied(self, step: int, link: Link, reply: ModelReply) -> None:
        self._live.execute(
            RecordReply(
                step=step,
                message=reply.message,
                finish=reply.finish,
                usage=reply.usage,
                cost=cost_of(reply.usage, self._bench.prices.get(link)),
                currency=self._bench.currency,
            )
        )
        self._bench.metrics.count_reply(link.provider, link.model, reply.usage)

    def _failed(self, step: int, link: Link, failure: CallFailure) -> RunError:
        failure_class = classify(failure, retry_after_cap_s=self._bench.chain.retry_after_cap)
        self._live.execute(RecordModelFailure(step=step, failure_class=failure_class, failure=failure))
        self._bench.metrics.model_calls.labels(link.provider, link.model, failure_class).inc()
        return error_of(link.provider, failure_class, failure)

    async def _call(self, step: int, link: Link) -> ModelReply:
        adapter = self._bench.adapters[link.provider]
        request = self._request(link)
        created = self._live.run.created
        if created is None or not created.streaming:
            return await adapter.complete(request)
        reply: ModelReply | None = None
        window = DeltaWindow(
            lambda text: self._tell(step, text),
            window_s=self._bench.recording.delta_window,
            max_bytes=self._bench.recording.delta_bytes,
        )
        try:
            async with aclosing(adapter.stream(request)) as parts:
                async for part in parts:
                    if isinstance(part, TextChunk):
                        window.add(part.text)
                    else:
                        reply = part
        finally:
            window.flush()
        if reply is None:
            raise ModelCallError(CallFailure(kind=FailureKind.INTERNAL, message="the adapter gave no reply"))
        return reply

    def _tell(self, step: int, text: str) -> None:
        # A lost pen tells the actor itself; a timer must not raise.
        with suppress(Fenced, StoreUnavailable):
            if self._bench.recording.deltas == "live":
                self._live.show(TextDelta(step=step, text=text))
            else:
                self._live.execute(RecordText(step=step, text=text))

    def _request(self, link: Link) -> ModelRequest:
        definition = self._definition
        return ModelRequest(
            model=link.model,
            instructions=definition.instructions,
            messages=self._live.conversation,
            tools=self._bench.tools.specs(definition.tools),
            options=definition.options,
            provider_settings=definition.provider_settings,
        )
