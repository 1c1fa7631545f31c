"""The provider of a trial: it plays each plan's model, troubles included, and keeps its own account."""

import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from ops.chaos.plan import Plan, PlannedCall, turn_of
from tests.upstream.behaviours import BEHAVIOURS
from tests.upstream.exchange import Exchange
from tests.upstream.family import Call
from tests.upstream.server import Upstream

MODELS = ("first", "second")
"""Both do the same; the second is the first one's fallback."""


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it reached the wall."""

    plan: int
    step: int
    model: str
    caller: str
    """The key that the caller's process was started with: one for each start of each host."""
    at: float
    """By this machine's clock, which Postgres goes by too."""


class Wall:
    """`down` makes it refuse everything."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._calls = itertools.count(1)
        self._met: Counter[tuple[int, int]] = Counter()
        self.log: list[Called] = []
        self.down = False

    @property
    def url(self) -> str:
        return self._upstream.url

    async def answer(self, exchange: Exchange) -> None:
        plan, replies = turn_of(exchange.attempt.body["messages"])
        step = replies + 1
        self.log.append(
            Called(
                plan=plan.number,
                step=step,
                model=exchange.attempt.model,
                caller=_key_of(exchange.attempt.headers),
                at=time.time(),
            )
        )
        if self.down:
            return await exchange.refuse(503, "service_unavailable", "down, as scheduled")
        self._met[plan.number, step] += 1
        trouble = plan.trouble_at(step)
        if trouble and self._met[plan.number, step] == 1:
            return await BEHAVIOURS[trouble](exchange)
        return await self._play(exchange, plan, step)

    async def _play(self, exchange: Exchange, plan: Plan, step: int) -> None:
        pace_s = plan.pace_ms / 1000
        if step <= len(plan.steps):
            await exchange.text("One moment. ")
            await exchange.pause(pace_s)
            await exchange.calls(*map(self._call, plan.steps[step - 1]))
            await exchange.finish("tool_calls")
            return
        for word in range(plan.words):
            await exchange.text(f"word{word} ")
            await exchange.pause(pace_s)
        await exchange.text(f"end of {plan.number}")
        await exchange.finish()

    def _call(self, planned: PlannedCall) -> Call:
        """Under an id that no other call of the trial has."""
        return Call(id=f"call_{next(self._calls):08}", name=planned.tool, arguments=planned.arguments)


@asynccontextmanager
async def wall() -> AsyncIterator[Wall]:
    """It answers for as long as the block lasts, on loopback."""
    async with Upstream() as upstream:
        built = Wall(upstream)
        for model in MODELS:
            BEHAVIOURS[model] = built.answer
        try:
            yield built
        finally:
            for model in MODELS:
                del BEHAVIOURS[model]


def _key_of(headers: dict[str, str]) -> str:
    """Each wire has its own header for it."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return lowered.get("x-api-key") or lowered.get("authorization", "").removeprefix("Bearer ")
