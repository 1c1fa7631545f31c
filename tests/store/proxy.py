"""A way to Postgres on which things go wrong when a test says so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import asyncpg

from app.db.pool import connect


class Proxy:
    """Passes bytes between the service and the server's socket.

    `lose_reply` swallows the next thing that the server says and hangs up: what it answers to has been done.
    `lose_request` swallows the next thing that the service says and hangs up: it has not. `lost` is set when
    that happened. `hold` keeps back all that the server says, and new connections, until `let_go`.
    """

    def __init__(self, folder: Path, dsn: str) -> None:
        parts = urlsplit(dsn)
        query = parse_qs(parts.query)
        self._port = query["port"][0]
        self._upstream = Path(query["host"][0]) / f".s.PGSQL.{self._port}"
        self._path = folder / self._upstream.name
        self.dsn = f"postgresql://{parts.username}@{parts.path}?host={quote(str(folder))}&port={self._port}"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._free = asyncio.Event()
        self._free.set()
        self._lose: str | None = None
        self._then_hold = False
        self.lost = asyncio.Event()

    async def connect(self) -> asyncpg.Connection:
        return await connect(self.dsn)

    async def accept(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self._path)

    async def refuse(self) -> None:
        """As if the server were gone: no new connections, and the old ones break."""
        if self._server:
            self._server.close()
            self._server = None
        self._path.unlink(missing_ok=True)
        self.cut()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def lose_reply(self) -> None:
        self._lose = "reply"
        self.lost.clear()

    def lose_request(self, *, then_hold: bool = False) -> None:
        self._lose = "request"
        self._then_hold = then_hold
        self.lost.clear()

    def _hang_up(self) -> None:
        self._lose = None
        if self._then_hold:
            self.hold()
        self.lost.set()

    def hold(self) -> None:
        self._free.clear()

    def let_go(self) -> None:
        self._free.set()

    async def close(self) -> None:
        self.let_go()
        await self.refuse()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._free.wait()
        up_reader, up_writer = await asyncio.open_unix_connection(self._upstream)
        pair = {writer, up_writer}
        self._writers |= pair
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, up_writer, "request", pair))
                both.create_task(self._pass(up_reader, writer, "reply", pair))
        finally:
            self._writers -= pair

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        kind: str,
        pair: set[asyncio.StreamWriter],
    ) -> None:
        self._tasks.add(task := asyncio.current_task())  # type: ignore[arg-type]
        try:
            with suppress(ConnectionError):
                while data := await reader.read(1 << 16):
                    if kind == "reply":
                        await self._free.wait()
                    if self._lose == kind:
                        self._hang_up()
                        break
                    writer.write(data)
        finally:
            self._tasks.discard(task)
            for end in pair:
                end.transport.abort()


@asynccontextmanager
async def proxied(folder: Path, dsn: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(folder, dsn)
    await proxy.accept()
    try:
        yield proxy
    finally:
        await proxy.close()
