"""A host that is told to stop while clients watch its runs: how many got what."""

import asyncio
import json
import signal
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, TCPConnector

from tests.supervision.processes import Trial


@dataclass
class Leaving:
    """What came of it."""

    ends: Counter[str] = field(default_factory=Counter)
    """The last frame of each stream, or what broke it."""
    refusals: list[tuple[int, str, str | None]] = field(default_factory=list)
    """Status, code and Retry-After of each request that came afterwards."""
    exit_status: int | None = None


async def leave_under(trial: Trial, clients: int, agent: str = "speaking") -> Leaving:
    """Have this many clients watch a run each, tell the host to stop, and go on asking until it is gone."""
    outcome = Leaving()
    async with ClientSession(base_url=trial.service.url, connector=TCPConnector(limit=0)) as session:
        started = asyncio.Semaphore(0)
        watching = [asyncio.create_task(_watch(session, agent, started, outcome)) for _ in range(clients)]
        for _ in range(clients):
            await started.acquire()
        trial.service.process.send_signal(signal.SIGTERM)
        await trial.told("drain.waits")
        asking = asyncio.create_task(_ask(trial, agent, outcome))
        await asyncio.gather(*watching)
        outcome.exit_status = await asyncio.to_thread(trial.service.process.wait, 60)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    return outcome


async def _watch(session: ClientSession, agent: str, started: asyncio.Semaphore, outcome: Leaving) -> None:
    try:
        async with session.post(f"/tracon/api/agents/{agent}/run", json={"message": "Go."}) as response:
            assert response.status == 200
            await response.content.readuntil(b"event: TextDelta")
            started.release()
            last = (await response.read()).decode().strip().rpartition("\n\n")[2]
        outcome.ends[last.partition("event: ")[2].partition("\n")[0]] += 1
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is counted
        outcome.ends[repr(error)] += 1


async def _ask(trial: Trial, agent: str, outcome: Leaving) -> None:
    """Each time on a connection of its own: the host closes those that it knows."""
    paths: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/health/ready", {}),
        ("POST", f"/tracon/api/agents/{agent}/run", {"json": {"message": "Go."}}),
    ]
    async with ClientSession(base_url=trial.service.url, connector=TCPConnector(force_close=True)) as session:
        while True:
            for method, path, options in paths:
                async with session.request(method, path, **options) as response:
                    body = json.loads(await response.read() or b"{}")
                    told = (response.status, body.get("code", ""), response.headers.get("Retry-After"))
                    if told not in outcome.refusals:
                        outcome.refusals.append(told)
            await asyncio.sleep(0.05)
