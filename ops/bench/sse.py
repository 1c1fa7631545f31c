"""Event streams: the writer in app.http.sse against the aiohttp-sse library, in one run.

    python -m ops.bench.sse

Both encode the same events with the same function; what differs is how frames reach the socket and how an
idle stream is kept open. The server is a process of its own; its CPU time and memory are what is reported.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from uuid import uuid4

import uvloop
from aiohttp import web
from aiohttp_sse import EventSourceResponse
from prometheus_client import CollectorRegistry, Gauge

from app.http.display import frame_data
from app.http.sse import EventStream, OpenStreams, frames
from domain.events import Recorded, TextDelta
from domain.ids import RunId, Version, run_stream

LIMIT = 65536
RUN_ID = RunId(uuid4())
EVENT = Recorded(
    stream_id=run_stream(RUN_ID),
    sequence=Version(7),
    position=1,
    at=datetime.now(UTC),
    tenant="default",
    event=TextDelta(step=1, text="The quick brown fox jumps over the lazy dog. "),
)
Writer = Callable[[web.Request, int, int], Awaitable[web.StreamResponse]]
STREAMS = web.AppKey("streams", OpenStreams)


async def own(request: web.Request, batches: int, size: int) -> web.StreamResponse:
    batch = [EVENT] * size
    async with request.app[STREAMS].open(EventStream(request, {})) as stream:
        for _ in range(batches):
            for piece in frames(RUN_ID, batch, LIMIT):
                await stream.send(piece)
            await asyncio.sleep(0)
        if not batches:
            await asyncio.Event().wait()
    return stream


async def library(request: web.Request, batches: int, size: int) -> web.StreamResponse:
    async with EventSourceResponse(headers={"X-Accel-Buffering": "no"}, sep="\n") as response:
        await response.prepare(request)
        for _ in range(batches):
            for _ in range(size):
                data = frame_data(RUN_ID, EVENT, LIMIT).decode()
                await response.send(data, id=str(EVENT.sequence), event="TextDelta")
            await asyncio.sleep(0)
        if not batches:
            await response.wait()
    return response


def handler_of(writer: Writer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await writer(request, int(request.query["batches"]), int(request.query["size"]))

    return handle


async def usage(_: web.Request) -> web.Response:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return web.json_response({"cpu_s": spent.ru_utime + spent.ru_stime, "rss": resident_bytes()})


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def serve() -> None:
    application = web.Application()
    streams = OpenStreams(15, Gauge("streams", "Open streams.", registry=CollectorRegistry()))
    application[STREAMS] = streams
    application.add_routes(
        [
            web.get("/own", handler_of(own)),
            web.get("/library", handler_of(library)),
            web.get("/usage", usage),
        ]
    )
    runner = web.AppRunner(application, handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await streams.keep_open()


class Server:
    """The server process, and what it spent."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return reader, writer

    async def drain(self, path: str) -> int:
        reader, writer = await self.open(path)
        count = 0
        while chunk := await reader.read(1 << 18):
            count += chunk.count(b"event: ")
        writer.close()
        return count

    async def usage(self) -> dict[str, float]:
        reader, writer = await self.open("/usage")
        answer = await reader.read()
        writer.close()
        spent: dict[str, float] = json.loads(answer.partition(b"\r\n\r\n")[2])
        return spent


@asynccontextmanager
async def a_server() -> AsyncIterator[Server]:
    process = subprocess.Popen(  # noqa: ASYNC220 - the bench has its loop to itself
        [sys.executable, "-m", "ops.bench.sse", "--serve"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield Server(int(process.stdout.readline()))
    finally:
        process.kill()
        process.wait()


async def throughput(writer: str, clients: int, batches: int, size: int) -> tuple[float, float]:
    """Frames per second over all clients, and the server's CPU in microseconds for one frame."""
    async with a_server() as server:
        path = f"/{writer}?batches={batches}&size={size}"
        await server.drain(path)
        before, began = await server.usage(), perf_counter()
        sent = sum(await asyncio.gather(*(server.drain(path) for _ in range(clients))))
        elapsed, after = perf_counter() - began, await server.usage()
    assert sent == clients * batches * size
    return sent / elapsed, (after["cpu_s"] - before["cpu_s"]) / sent * 1e6


async def idle(writer: str, streams: int, seconds: float) -> tuple[float, float]:
    """Resident KiB for one idle stream, and the server's CPU in milliseconds per second for all of them."""
    async with a_server() as server:
        before = await server.usage()
        path = f"/{writer}?batches=0&size=0"
        opened = [await server.open(path) for _ in range(streams)]
        await asyncio.gather(*(reader.readuntil(b"\r\n\r\n") for reader, _ in opened))
        settled = await server.usage()
        await asyncio.sleep(seconds)
        after = await server.usage()
        for _, connection in opened:
            connection.close()
    return (settled["rss"] - before["rss"]) / streams / 1024, (
        after["cpu_s"] - settled["cpu_s"]
    ) / seconds * 1e3


async def main(idle_streams: int, idle_s: float) -> None:
    print(f"{'':34}{'own':>12}{'library':>12}{'ratio':>8}")
    for clients, batches, size in ((1, 20_000, 1), (64, 500, 1), (64, 125, 4), (8, 80, 100)):
        name = f"{clients} clients, {size} frames at once"
        mine, theirs = [await throughput(w, clients, batches, size) for w in ("own", "library")]
        row(f"{name}: frames/s", mine[0], theirs[0])
        row(f"{name}: us/frame", mine[1], theirs[1])
    mine, theirs = [await idle(w, idle_streams, idle_s) for w in ("own", "library")]
    row(f"{idle_streams} idle: KiB each", mine[0], theirs[0])
    row(f"{idle_streams} idle: CPU ms/s", mine[1], theirs[1])


def row(name: str, mine: float, theirs: float) -> None:
    print(f"{name:34}{mine:12.1f}{theirs:12.1f}{mine / theirs if theirs else 0:8.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--idle-streams", type=int, default=2000)
    parser.add_argument("--idle-seconds", type=float, default=30)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve())
    else:
        uvloop.run(main(options.idle_streams, options.idle_seconds))
