"""The upstream server: real sockets on loopback."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.upstream.attempts import Attempt, AttemptLog
from tests.upstream.behaviours import BEHAVIOURS
from tests.upstream.chat import ChatFamily
from tests.upstream.exchange import Exchange
from tests.upstream.family import Family
from tests.upstream.gemini import GeminiFamily
from tests.upstream.messages import MessagesFamily
from tests.upstream.responses import ResponsesFamily

_FAMILIES: dict[str, Callable[[], Family]] = {
    "/chat/completions": ChatFamily,
    "/responses": ResponsesFamily,
    "/messages": MessagesFamily,
    "enerateContent": GeminiFamily,
}
"""Each wire, by how its paths end."""


class Upstream:
    """`async with Upstream() as upstream:` serves until the block ends. `log` is what it saw."""

    def __init__(self) -> None:
        self.log = AttemptLog()
        self.port = 0
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/{path:.*}", self._answer)
        app.router.add_get("/{path:.*}", self._list)
        self.lists: list[tuple[str, dict[str, str]]] = []
        """Who asked for the list of models: paths and headers."""
        self.list_answer: Callable[[], Awaitable[web.Response]] = _models
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many connections are open now, idle ones too."""
        assert self._runner.server is not None
        return len(self._runner.server.connections)

    async def deserted(self, within_s: float = 5.0) -> None:
        """Wait until no connection is open. The server's own list has no event to wait for."""
        async with asyncio.timeout(within_s):
            while self.connections:
                await asyncio.sleep(0.005)

    async def _list(self, request: web.Request) -> web.Response:
        self.lists.append((request.path_qs, dict(request.headers)))
        return await self.list_answer()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        family = next(wire() for end, wire in _FAMILIES.items() if request.path.endswith(end))
        attempt = await _attempt(request, family)
        self.log.add(attempt)
        exchange = Exchange(request, attempt, family)
        try:
            await BEHAVIOURS.get(attempt.model, _no_such_model)(exchange)
        except (asyncio.CancelledError, ConnectionError):
            if not attempt.ended.is_set():
                attempt.left_at = asyncio.get_running_loop().time()
            raise
        finally:
            attempt.arrived.set()
            attempt.ended.set()
        assert exchange.response is not None
        return exchange.response


async def _attempt(request: web.Request, family: Family) -> Attempt:
    body = await request.json()
    return Attempt(
        family=family.name,
        model=family.model(request.path, body),
        streamed=family.wants_stream(request.path, body),
        path=request.path_qs,
        body=body,
        headers=dict(request.headers),
        connection=str(request.transport and request.transport.get_extra_info("peername")),
        started_at=asyncio.get_running_loop().time(),
    )


async def _models() -> web.Response:
    return web.json_response({"data": []})


async def _no_such_model(exchange: Exchange) -> None:
    await exchange.refuse(404, "model_not_found", "no such model")
