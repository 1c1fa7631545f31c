"""Memory of live streaming runs that wait on a slow upstream.

    python -m ops.bench memory

Each run has its client's stream open, has told one piece of text, and waits for more: its actor, its upstream
connection and its watcher are all there. The figure is resident memory of the service process.
"""

import asyncio
import resource

import uvloop
from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector

from ops.bench.report import table
from ops.bench.service import Processes, processes

RUNS = 2000


def run() -> None:
    """Measure and print the table."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with processes() as both:
        uvloop.run(_measure(both))


async def _measure(both: Processes) -> None:
    timeout = ClientTimeout(total=None)
    async with ClientSession(connector=TCPConnector(limit=0), timeout=timeout) as session:
        warm = await _open(session, both, 50)
        before = both.resident_bytes
        streams = await _open(session, both, RUNS)
        after = both.resident_bytes
        for response in (*warm, *streams):
            response.close()
    table(
        f"{RUNS} live streaming runs that wait on a slow upstream",
        ("measure", "figure"),
        (
            ("resident before, MB", f"{before / 1e6:.0f}"),
            (f"resident with {RUNS} runs, MB", f"{after / 1e6:.0f}"),
            ("KB per run", f"{(after - before) / RUNS / 1000:.1f}"),
        ),
        "target: at most 60 KB per run",
    )


async def _open(session: ClientSession, both: Processes, count: int) -> list[ClientResponse]:
    """That many runs, each followed up to its first text."""
    gate = asyncio.Semaphore(64)

    async def one() -> ClientResponse:
        async with gate:
            response = await session.post(f"{both.url}/tracon/api/agents/slow/run", json={"message": "hello"})
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"event: TextDelta"):
                    return response
        raise RuntimeError("a stream ended before its first text")

    return list(await asyncio.gather(*(one() for _ in range(count))))
