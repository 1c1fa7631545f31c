"""Event streams: their frames, and what keeps them open."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from aiohttp import ClientResponse, ClientSession, web
from aiohttp.test_utils import TestServer
from prometheus_client import CollectorRegistry, Gauge

from app.http import sse
from app.http.sse import EventStream, OpenStreams, frames
from app.store.feed import LiveFrame
from domain.errors import Unavailable
from domain.events import TextDelta
from domain.ids import RunId
from tests.http.test_display import recorded

RUN = RunId(UUID(int=7))
Body = Callable[[EventStream], Awaitable[None]]


class Streaming:
    """A server whose one path is an event stream, written by the test."""

    def __init__(self, keepalive_s: float = 60.0) -> None:
        self.gauge = Gauge("streams", "Open.", registry=CollectorRegistry())
        self.streams = OpenStreams(keepalive_s, self.gauge)
        self.ended = asyncio.Event()
        self.body: Body = self._wait

    async def _wait(self, stream: EventStream) -> None:
        await stream.send(b"event: ready\ndata: {}\n\n")
        await asyncio.Event().wait()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        try:
            async with self.streams.open(EventStream(request, {})) as stream:
                await self.body(stream)
            return stream
        finally:
            self.ended.set()

    def open_now(self) -> float:
        return float(self.gauge._value.get())


@asynccontextmanager
async def serving(streaming: Streaming) -> AsyncIterator[TestServer]:
    application = web.Application()
    application.router.add_get("/", streaming.handle)
    server = TestServer(application, handler_cancellation=True)
    timer = asyncio.create_task(streaming.streams.keep_open())
    async with server:
        yield server
    timer.cancel()


@asynccontextmanager
async def watching(server: TestServer) -> AsyncIterator[asyncio.StreamReader]:
    """The raw bytes after the headers; leaving the block hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    yield reader
    writer.transport.abort()


@asynccontextmanager
async def fetched(server: TestServer) -> AsyncIterator[ClientResponse]:
    async with ClientSession() as client, client.get(server.make_url("/")) as response:
        yield response


def test_a_batch_is_numbered_frames() -> None:
    """HTTP-3"""
    one, live = (
        recorded(TextDelta(step=1, text="a\nb")),
        LiveFrame(after=3, event=TextDelta(step=1, text="c")),
    )
    assert b"".join(frames(RUN, [one, live], 1000)) == (
        b"id: 3\nevent: TextDelta\n"
        b'data: {"run_id":"00000000-0000-0000-0000-000000000007","sequence":3,"type":"TextDelta",'
        b'"at":"2026-01-02T03:04:05Z","data":{"step":1,"text":"a\\nb"}}\n\n'
        b"event: TextDelta\n"
        b'data: {"run_id":"00000000-0000-0000-0000-000000000007","type":"TextDelta",'
        b'"data":{"step":1,"text":"c"}}\n\n'
    )


def test_small_frames_go_out_together_and_large_ones_one_by_one() -> None:
    """A client that is behind is waited for between pieces, so a host holds one of them for it, not all."""
    small, large = (recorded(TextDelta(step=1, text=size * "x")) for size in (1, 70_000))
    pieces = list(frames(RUN, [small, small, large, large, small], 1 << 20))
    assert [piece.count(b"event: ") for piece in pieces] == [3, 1, 1]


async def test_an_idle_stream_is_kept_open_by_comments() -> None:
    """HTTP-3"""
    async with serving(Streaming(keepalive_s=0.05)) as server, watching(server) as reader:
        for _ in range(3):
            await reader.readuntil(b": keep-alive\n\n")


async def test_a_stream_that_was_not_quiet_for_long_gets_no_comment() -> None:
    """HTTP-3"""
    streaming = Streaming()

    async def looked_after(stream: EventStream) -> None:
        await stream.send(b"data: 1\n\n")
        now = asyncio.get_running_loop().time()
        await stream.look_after(now + 9.0, 10.0)
        await stream.send(b"data: 2\n\n")
        await stream.look_after(now + 11.0, 10.0)

    streaming.body = looked_after
    async with serving(streaming) as server, fetched(server) as response:
        assert await response.read() == b"data: 1\n\ndata: 2\n\n: keep-alive\n\n"


async def test_a_client_that_hangs_up_frees_its_stream_at_once() -> None:
    """HTTP-3"""
    streaming = Streaming()
    async with serving(streaming) as server:
        async with watching(server) as reader:
            await reader.readuntil(b"event: ready")
            assert streaming.open_now() == 1
        await asyncio.wait_for(streaming.ended.wait(), 5)
        assert streaming.open_now() == 0


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [(Unavailable("Come back later."), "unavailable", 503), (RuntimeError("secret"), "internal_error", 500)],
)
async def test_a_late_failure_is_a_frame_without_a_number(error: Exception, code: str, status: int) -> None:
    """HTTP-3"""
    streaming = Streaming()

    async def fail(stream: EventStream) -> None:
        await stream.send(b"id: 1\nevent: first\ndata: {}\n\n")
        raise error

    streaming.body = fail
    async with serving(streaming) as server, fetched(server) as response:
        first, last = (await response.text()).removesuffix("\n\n").split("\n\n")
    assert response.status == 200
    assert first == "id: 1\nevent: first\ndata: {}"
    assert last.startswith("event: error\ndata: {")
    assert f'"code":"{code}"' in last
    assert f'"status":{status}' in last
    assert "secret" not in last


async def test_a_host_that_stops_says_so_and_ends_its_streams() -> None:
    """HTTP-3"""
    streaming = Streaming()
    async with serving(streaming) as server, watching(server) as reader:
        await reader.readuntil(b"event: ready")
        streaming.streams.close()
        assert b'"code":"host_stopping"' in await asyncio.wait_for(reader.read(), 5)


async def test_a_client_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP-3: it blocks nobody while it stalls, and it does not stall for ever."""
    monkeypatch.setattr(sse, "STALLED_S", 0.2)
    streaming = Streaming(keepalive_s=0.1)

    async def flood(stream: EventStream) -> None:
        while True:
            await stream.send(b"data: " + b"x" * 65536 + b"\n\n")

    streaming.body = flood
    async with serving(streaming) as server, watching(server):
        await asyncio.wait_for(streaming.ended.wait(), 10)
    assert streaming.open_now() == 0
