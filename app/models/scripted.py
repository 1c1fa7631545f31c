"""The scripted provider: a model that does what it is told, for demos and tests, faults included.

It keeps the same time limits and reports the same failures as a provider behind HTTP.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Mapping

from app.models.patience import STOPPING, Patience, TimeLimits
from app.models.port import MaySend, ModelReply, ModelRequest, NotSent, StillSilent, TextChunk, always
from app.models.replies import reply_of
from app.models.scripted_plan import NO_SUCH_MODEL, Finish, plan, replies_in_turn, usage_of
from app.models.scripted_settings import Behaviour, ScriptedModel
from domain.failure import CallFailure


class ScriptedAdapter:
    """Each model's script is consumed one call at a time, in the order of the calls of the whole process."""

    def __init__(self, models: Mapping[str, ScriptedModel], limits: TimeLimits) -> None:
        self._models = models
        self._limits = limits
        self._scripts = {name: _calls_of(model) for name, model in models.items()}
        self._closing = asyncio.Event()

    async def complete(self, request: ModelRequest, may_send: MaySend = always) -> ModelReply:
        performance = self._begin(request, may_send)
        for _ in performance.chunks:
            await performance.next_chunk()
        return await performance.end()

    async def stream(
        self, request: ModelRequest, may_send: MaySend = always
    ) -> AsyncGenerator[TextChunk | ModelReply, None]:
        performance = self._begin(request, may_send)
        for chunk in performance.chunks:
            await performance.next_chunk()
            performance.patience.begun = performance.patience.delivered = True
            yield TextChunk(chunk)
        yield await performance.end()

    async def close(self) -> None:
        self._closing.set()

    def _begin(self, request: ModelRequest, may_send: MaySend) -> "Performance":
        if not may_send():
            raise NotSent
        patience = Patience(self._limits, request.first_content_timeout_s)
        return Performance(self._next(request), request, patience, self._closing)

    def _next(self, request: ModelRequest) -> Behaviour:
        model = self._models.get(request.model)
        if model is None:
            return NO_SUCH_MODEL
        behaviour = next(self._scripts[request.model], None)
        if behaviour is not None:
            return behaviour
        if isinstance(model.default, Behaviour):
            return model.default
        return model.default[min(replies_in_turn(request.messages), len(model.default) - 1)]


class Performance:
    """One call being played. Unstreamed, the answer is not there before all of it is."""

    def __init__(
        self, behaviour: Behaviour, request: ModelRequest, patience: Patience, closing: asyncio.Event
    ) -> None:
        self.patience = patience
        self._behaviour = behaviour
        self._request = request
        self._closing = closing
        self._plan = plan(behaviour, request)
        self._delay_s = behaviour.first_delay

    @property
    def chunks(self) -> tuple[str, ...]:
        return self._plan.chunks

    async def next_chunk(self) -> None:
        """Wait until the next chunk is due."""
        await self._pause(self._delay_s)
        self._delay_s = self._behaviour.delay

    async def end(self) -> ModelReply:
        """The reply, or the failure that this behaviour is."""
        if not self.chunks:
            await self._pause(self._delay_s)
        ending = self._plan.ending
        if isinstance(ending, CallFailure):
            raise self.patience.marked(ending)
        if isinstance(ending, Finish):
            text = "".join(self.chunks)
            usage = usage_of(self._behaviour, self._request, text, ending.calls)
            return reply_of(text, ending.calls, length=ending.length, usage=usage)
        await self._pause(math.inf)
        raise self.patience.lost()

    async def _pause(self, seconds: float) -> None:
        """Wait. A silence that is longer than the call may wait is the failure that it is over HTTP."""
        left_s = self.patience.left()
        try:
            async with asyncio.timeout(min(seconds, left_s)):
                await self._closing.wait()
        except asyncio.CancelledError as cancelled:
            if self.patience.silent:
                raise StillSilent from cancelled
            raise
        except TimeoutError:
            if seconds > left_s:
                raise self.patience.lost() from None
        else:
            raise self.patience.marked(STOPPING)


def _calls_of(model: ScriptedModel) -> Iterator[Behaviour]:
    for behaviour in model.script:
        for _ in range(behaviour.repeat):
            yield behaviour
