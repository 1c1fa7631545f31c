"""Queued runs: how long one waits for a worker that has nothing else to do, how many get done in a second.

    python -m ops.bench queue

Waking up is measured one run at a time, from the recording of the submission to the recording of the run's
start, by the database's clock. The rate is end to end: from the first submission to the last end, 64 clients
submitting over HTTP. Client, service, upstream and Postgres share the machine.
"""

import asyncio
import statistics
import time
from datetime import datetime
from typing import Any

import uvloop
from aiohttp import ClientSession, TCPConnector

from ops.bench.report import spread, table
from ops.bench.service import Processes, processes

WAKE_UPS = 300
RUNS = 3000
CONCURRENT = 64
_HEADERS = {"Prefer": "respond-async"}
_PAUSE_S = 0.02
"""Between wake-ups, so that each finds the host at rest."""
_LOOK_S = 0.1
"""How often to see whether the last has ended; showing metrics costs the service something too."""


def run(rounds: int = 5) -> None:
    """Measure in turns and print the table."""
    with processes() as both:
        uvloop.run(_measure(both, rounds))


async def _measure(both: Processes, rounds: int) -> None:
    async with ClientSession(both.url, connector=TCPConnector(limit=0)) as session:
        await _many(session, 300)  # warm
        medians, tails, per_second, cpu_ms = [], [], [], []
        for _ in range(rounds):
            waits = [await _wake_up_ms(session) for _ in range(WAKE_UPS)]
            medians.append(statistics.median(waits))
            tails.append(statistics.quantiles(waits, n=100)[98])
            cpu = both.cpu_s
            per_second.append(RUNS / await _many(session, RUNS))
            cpu_ms.append((both.cpu_s - cpu) / RUNS * 1000)
    table(
        f"Queued runs of one model call: median (least..most) of {rounds} rounds",
        ("measure", "figure"),
        (
            ("submission to start on an idle host, p50 ms", spread(medians, ".2f")),
            ("submission to start on an idle host, p99 ms", spread(tails, ".2f")),
            (f"runs/s end to end, {CONCURRENT} clients", spread(per_second)),
            ("CPU ms of the service per run", spread(cpu_ms, ".2f")),
        ),
        "targets: p50 under 10 ms, at least 300 runs/s",
    )


async def _wake_up_ms(session: ClientSession) -> float:
    run_id = await _submit(session)
    started = None
    while started is None:
        await asyncio.sleep(_PAUSE_S)
        run = await _json(session, f"/tracon/api/runs/{run_id}")
        started = run["started_at"]
    waited = datetime.fromisoformat(started) - datetime.fromisoformat(run["created_at"])
    return waited.total_seconds() * 1000


async def _many(session: ClientSession, total: int) -> float:
    """Submit them, wait for the last to end, and return how long that took."""
    began, before, remaining = time.perf_counter(), await _ended(session), iter(range(total))

    async def client() -> None:
        for _ in remaining:
            await _submit(session)

    await asyncio.gather(*(client() for _ in range(CONCURRENT)))
    while await _ended(session) < before + total:  # noqa: ASYNC110 - nobody here is told
        await asyncio.sleep(_LOOK_S)
    return time.perf_counter() - began


async def _submit(session: ClientSession) -> str:
    path, body = "/tracon/api/agents/instant/run", {"message": "hello"}
    async with session.post(path, json=body, headers=_HEADERS) as response:
        response.raise_for_status()
        run_id: str = (await response.json())["id"]
        return run_id


async def _ended(session: ClientSession) -> float:
    """Runs whose end the service has recorded."""
    async with session.get("/metrics") as response:
        response.raise_for_status()
        lines = (await response.text()).splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("tracon_runs_ended_total"))


async def _json(session: ClientSession, path: str) -> dict[str, Any]:
    async with session.get(path) as response:
        response.raise_for_status()
        answer: dict[str, Any] = await response.json()
        return answer
