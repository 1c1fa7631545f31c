"""A run of one model call: what it adds to the call, how many fit into a second, what one costs in CPU.

    python -m ops.bench run

The upstream answers at once. A client calls it directly and through a run (one JSON answer, durable), in
turns. Client, service, upstream and Postgres share the machine; the CPU figure is the service process alone.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

import uvloop
from aiohttp import ClientSession, TCPConnector

from ops.bench.report import ratio, spread, table
from ops.bench.service import Processes, processes

CONCURRENT = 64
RUNS = 3000
CALLS = 300
_HEADERS = {"Accept": "application/json"}

Call = Callable[[], Awaitable[None]]


def run(rounds: int = 5) -> None:
    """Measure in turns and print the table."""
    with processes() as both:
        uvloop.run(_measure(both, rounds))


async def _measure(both: Processes, rounds: int) -> None:
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        direct, through = _calls(session, both)
        await _many(through, 500, CONCURRENT)  # warm
        direct_ms, run_ms, per_second, cpu_ms = [], [], [], []
        for _ in range(rounds):
            direct_ms.append(await _median_ms(direct))
            run_ms.append(await _median_ms(through))
            cpu, began = both.cpu_s, time.perf_counter()
            await _many(through, RUNS, CONCURRENT)
            per_second.append(RUNS / (time.perf_counter() - began))
            cpu_ms.append((both.cpu_s - cpu) / RUNS * 1000)
    added = [a - b for a, b in zip(run_ms, direct_ms, strict=True)]
    table(
        f"A run of one model call: median (least..most) of {rounds} rounds",
        ("measure", "figure"),
        (
            ("upstream directly, median ms, 1 at a time", spread(direct_ms, ".2f")),
            ("through a run, median ms, 1 at a time", spread(run_ms, ".2f")),
            ("added by the run, ms", spread(added, ".2f")),
            ("through a run / directly", f"{ratio(run_ms, direct_ms):.1f}"),
            (f"runs/s, {CONCURRENT} at a time", spread(per_second)),
            (f"CPU ms of the service per run, {CONCURRENT} at a time", spread(cpu_ms, ".2f")),
        ),
        "target: at most 2.5 CPU ms per run",
    )


def _calls(session: ClientSession, both: Processes) -> tuple[Call, Call]:
    async def direct() -> None:
        body = {"model": "instant", "messages": [{"role": "user", "content": "hello"}]}
        async with session.post(f"{both.upstream}/v1/chat/completions", json=body) as response:
            response.raise_for_status()
            await response.read()

    async def through() -> None:
        url = f"{both.url}/tracon/api/agents/instant/run"
        async with session.post(url, json={"message": "hello"}, headers=_HEADERS) as response:
            response.raise_for_status()
            await response.read()

    return direct, through


async def _median_ms(call: Call) -> float:
    figures = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await call()
        figures.append((time.perf_counter() - began) * 1000)
    return statistics.median(figures)


async def _many(call: Call, total: int, concurrent: int) -> None:
    remaining = iter(range(total))

    async def worker() -> None:
        for _ in remaining:
            await call()

    await asyncio.gather(*(worker() for _ in range(concurrent)))
