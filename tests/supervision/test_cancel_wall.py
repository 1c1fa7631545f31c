"""Cancelling a run, as its provider sees it: the connection closes at once, nothing follows (CANCEL-3)."""

import asyncio
from typing import Any

import pytest

from app.models.accounts import Account
from domain import events as e
from domain.agent import AgentDefinition
from domain.ids import DEFAULT_TENANT, RunId
from tests.hosts import follow, kinds, start
from tests.http.client import eventually
from tests.supervision.conftest import OpenWall
from tests.supervision.one_database import database as database
from tests.supervision.walls import Wall, provider
from tests.upstream.attempts import Attempt
from tests.upstream.server import Upstream

PROMISED_S = 0.1
BUSY_S = 1.0
"""What one of several may take on a machine that is busy with something else."""
HANGING = ["silent", "silent-after-preamble", "stall-2", "comments-only"]


def agents(*models: str) -> tuple[AgentDefinition, ...]:
    return tuple(AgentDefinition(name=model, provider="p", model=model) for model in models)


async def attempts(wall: Wall, model: str, count: int) -> list[Attempt]:
    """The attempts of this model, once so many are there and have sent what they will."""
    async with asyncio.timeout(30):
        while len(wall.attempts("p", model)) < count:
            await wall.upstream.log.changed()
        begun = wall.attempts("p", model)
        for attempt in begun:
            await attempt.arrived.wait()
    return begun


def places(wall: Wall) -> tuple[float, float]:
    """In use, and waited for."""
    count = wall.client.count
    return (
        count("tracon_model_places_in_use", provider="p"),
        count("tracon_model_calls_waiting", provider="p"),
    )


async def cancelled_s(wall: Wall, model: str, **more: Any) -> float:
    """Cancel a run over HTTP while its call hangs; how long until the provider saw its client go."""
    made = len(wall.attempts("p", model))
    run_id = await start(wall.host, model, **more)
    attempt = (await attempts(wall, model, made + 1))[-1]
    asked_at = asyncio.get_running_loop().time()
    answer = await wall.client.post(f"/tracon/api/runs/{run_id}/cancel")
    assert answer.status == 202
    seen = await follow(wall.host, run_id)
    assert kinds(seen)[-2:] == ["RunCancelRequested", "RunCancelled"]
    assert not {"ModelCallFailed", "ModelCallRetried", "ModelFallbackUsed"} & {*kinds(seen)}
    await attempt.ended.wait()
    assert attempt.left_at is not None
    assert len(wall.attempts("p", model)) == made + 1, "nothing was tried again"
    return attempt.left_at - asked_at


@pytest.mark.parametrize("streaming", [True, False], ids=["watched", "waited for"])
@pytest.mark.parametrize("model", HANGING)
async def test_the_providers_connection_is_closed_within_a_tenth_of_a_second(
    wall_of: OpenWall, upstream: Upstream, model: str, streaming: bool
) -> None:
    """CANCEL-3, BREAK-4, CONC-2; C14, C42, C46: it starts no retry, frees its place, counts for nothing."""
    wall = await wall_of(
        providers={"p": provider("chat", upstream, "p")},
        agents=agents(model),
        model_concurrency={"max_concurrent_calls_per_provider": 1},
        circuit_breaker={"failure_threshold": 1},
    )
    took_s = [await cancelled_s(wall, model, streaming=streaming) for _ in range(4)]
    assert min(took_s) < PROMISED_S
    assert max(took_s) < BUSY_S
    assert places(wall) == (0, 0)
    assert wall.host.services.circuits.health(Account("p")).consecutive_failures == 0
    await upstream.deserted()


async def test_five_hundred_cancelled_streams_leave_no_place_in_use_and_no_connection_open(
    wall_of: OpenWall, upstream: Upstream
) -> None:
    """CANCEL-3, CONC-2; C29, C42: those that waited for a place have never reached the provider."""
    model, limit = "silent-after-preamble", 400
    wall = await wall_of(
        providers={"p": provider("chat", upstream, "p")},
        agents=agents(model),
        model_concurrency={"max_concurrent_calls_per_provider": limit},
        circuit_breaker={"failure_threshold": 1},
    )
    turnstile = asyncio.Semaphore(50)

    async def begin() -> RunId:
        async with turnstile:
            return await start(wall.host, model, streaming=True)

    async def cancel(run_ids: list[RunId]) -> None:
        for run_id in run_ids:
            await wall.host.services.runs.cancel(DEFAULT_TENANT, run_id)

    calling = await asyncio.gather(*(begin() for _ in range(limit)))
    await attempts(wall, model, limit)
    waiting = await asyncio.gather(*(begin() for _ in range(500 - limit)))
    await eventually(lambda: places(wall) == (limit, len(waiting)), within_s=30)
    assert upstream.connections == limit
    await cancel(waiting)  # first: a place that is freed is for whoever still waits
    await eventually(lambda: places(wall) == (limit, 0), within_s=30)
    await cancel(calling)
    await eventually(lambda: len(wall.host.roster) == 0, within_s=30)
    assert places(wall) == (0, 0)
    await upstream.deserted()
    assert upstream.log.unfinished == 0
    assert len(wall.attempts("p", model)) == limit
    assert wall.host.services.circuits.health(Account("p")).consecutive_failures == 0
    for run_id in (calling[-1], waiting[-1]):
        assert kinds(await follow(wall.host, run_id))[-1] == "RunCancelled"


@pytest.mark.parametrize("streaming", [True, False], ids=["watched", "waited for"])
async def test_however_a_call_ends_its_place_is_free(
    wall_of: OpenWall, upstream: Upstream, streaming: bool
) -> None:
    """CONC-2; C28, C29: with one place, each run would wait for ever for one that was not freed."""
    models = (
        "text",
        "400",
        "500",
        "503",
        "empty",
        "cut-2",
        "reset",
        "content-filter",
        "200-page",
        "not-http",
    )
    wall = await wall_of(
        providers={"p": provider("chat", upstream, "p")},
        agents=agents(*models),
        model_concurrency={"max_concurrent_calls_per_provider": 1},
        circuit_breaker={"failure_threshold": 100},
    )
    for model in models:
        seen = await follow(wall.host, await start(wall.host, model, streaming=streaming))
        assert isinstance(seen[-1].event, e.RunCompleted | e.RunFailed)
        assert places(wall) == (0, 0)
