"""A host's own way to Postgres: a TCP proxy on loopback that can break, stall and slow down."""

import asyncio
from contextlib import suppress
from enum import Enum
from pathlib import Path

_CHUNK = 1 << 16
_PAUSE_S = 0.05


class _Way(Enum):
    REQUEST = 1
    REPLY = 2


class Link:
    """Passes bytes between a host and the server's socket, in both directions.

    While it is held, nothing passes and connections are made to nowhere; what was sent arrives afterwards.
    A lost reply or request is the next thing of its kind: it is swallowed, and the connection with it.
    """

    def __init__(self, socket_path: Path) -> None:
        self._socket_path = socket_path
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._lose: _Way | None = None
        self._closing = False
        self.delay_s = 0.0
        """How much later everything arrives."""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def dsn(self) -> str:
        if self._server is None:
            raise RuntimeError("the link is not up")
        port = self._server.sockets[0].getsockname()[1]
        return f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"

    async def close(self) -> None:
        """Break everything. Nothing is cancelled: the server would complain of each connection that was."""
        self._closing = True
        if self._server:
            self._server.close()
        self.let_go()
        while self._tasks:
            self.cut()
            await asyncio.wait(self._tasks, timeout=_PAUSE_S)

    def cut(self) -> None:
        """Break every connection that is open now."""
        for end in self._ends:
            end.transport.abort()

    def hold(self) -> None:
        self._open.clear()

    def let_go(self) -> None:
        self._open.set()

    def lose_reply(self) -> None:
        self._lose = _Way.REPLY

    def lose_request(self) -> None:
        self._lose = _Way.REQUEST

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        ends = {writer}
        try:
            await self._open.wait()
            if self._closing:
                return
            with suppress(OSError):
                up_reader, up_writer = await asyncio.open_unix_connection(self._socket_path)
                ends.add(up_writer)
                self._ends |= ends
                await self._both(
                    self._pass(reader, up_writer, _Way.REQUEST), self._pass(up_reader, writer, _Way.REPLY)
                )
        finally:
            self._tasks.discard(task)
            self._ends -= ends
            for end in ends:
                end.transport.abort()

    async def _both(self, *ways: "asyncio._CoroutineLike[None]") -> None:
        """Until either ends; the other ends with it."""
        passing = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in passing:
                each.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Way) -> None:
        while data := await reader.read(_CHUNK):
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            await self._open.wait()
            if self._lose is way:
                self._lose = None
                return
            writer.write(data)
            await writer.drain()
