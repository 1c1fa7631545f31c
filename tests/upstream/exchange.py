"""One answer of the upstream: how it is sent, and the ways in which it can go wrong on the socket."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from aiohttp import web

from tests.upstream.attempts import Attempt
from tests.upstream.family import Answer, Call, Family, Spent


class Exchange:
    """What a behaviour is given to answer with. Unstreamed, nothing is sent before the answer is whole."""

    def __init__(self, request: web.Request, attempt: Attempt, family: Family) -> None:
        self.request = request
        self.attempt = attempt
        self.family = family
        self.response: web.StreamResponse | None = None
        self.answer = Answer()

    @property
    def streamed(self) -> bool:
        return self.attempt.streamed

    async def open(self, *, preamble: bool = True, content_type: str = "text/event-stream") -> None:
        """Send the headers of a stream, and the events that carry nothing yet."""
        if self.response is not None or not self.streamed:
            return
        self.response = web.StreamResponse(
            headers={"Content-Type": content_type, "Cache-Control": "no-cache"}
        )
        await self.response.prepare(self.request)
        if preamble:
            await self.send(*self.family.preamble(self.attempt.model))

    async def send(self, *pieces: bytes) -> None:
        """Send bytes of a stream as they are."""
        assert self.response is not None
        for piece in pieces:
            await self.response.write(piece)
        self.attempt.arrived.set()

    async def text(self, *chunks: str) -> None:
        await self.open()
        for chunk in chunks:
            if self.streamed:
                await self.send(self.family.text(self.attempt.model, chunk, self.answer.text))
            self.answer = replace(self.answer, text=self.answer.text + chunk)

    async def think(self) -> None:
        await self.open()
        self.answer = replace(self.answer, reasoned=True)
        if self.streamed:
            await self.send(*self.family.reasoning(self.attempt.model))

    async def calls(self, *calls: Call) -> None:
        await self.open()
        self.answer = replace(self.answer, calls=calls)
        if self.streamed:
            await self.send(*self.family.calls(self.attempt.model, calls))

    async def finish(
        self, reason: str = "stop", *, spent: Spent | None = None, terminate: bool = True
    ) -> None:
        """End the answer as it should end. Unstreamed, send it."""
        await self.open()
        self.answer = replace(self.answer, reason=reason, spent=spent or Spent())
        if not self.streamed:
            return await self.reply(200, self.family.whole(self.attempt.model, self.answer))
        await self.send(*self.family.finish(self.attempt.model, self.answer))
        if terminate:
            await self.send(*self.family.terminator())
        return None

    async def reply(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> None:
        """Send a whole response."""
        self.response = web.Response(
            status=status, body=body, headers={"Content-Type": content_type, **(headers or {})}
        )
        await self.response.prepare(self.request)
        await self.response.write_eof()
        self.attempt.arrived.set()

    async def refuse(
        self, status: int, code: str, message: str = "no", headers: Mapping[str, str] | None = None
    ) -> None:
        await self.reply(status, self.family.error_body(status, code, message), headers)

    async def report(self, status: int, code: str, message: str = "no") -> None:
        """An error inside of a success."""
        if not self.streamed:
            return await self.reply(200, self.family.error_body(status, code, message))
        await self.open()
        await self.send(self.family.error_event(status, code, message))
        return None

    async def reset(self) -> NoReturn:
        """Break the connection with a RST."""
        transport = self._transport()
        raw: socket.socket = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        await self._gone()

    async def cut(self) -> NoReturn:
        """Close the connection in the middle: a FIN, and no terminator of any kind."""
        await self.open()
        if not self.streamed:
            await self.half_a_body()
        await self.cut_off()

    async def cut_off(self) -> NoReturn:
        self._transport().close()
        await self._gone()

    async def half_a_body(self, share: float = 0.5) -> None:
        """Unstreamed: the first part of the answer, under a Content-Length for all of it."""
        if self.streamed:
            return
        body = self.family.whole(self.attempt.model, self.answer)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(body)
        await response.prepare(self.request)
        await response.write(body[: int(len(body) * share)])
        self.response = response

    async def pause(self, seconds: float) -> None:
        """A server's own pace."""
        await asyncio.sleep(seconds)

    async def hang(self) -> NoReturn:
        """Say nothing more until the client has had enough."""
        self.attempt.arrived.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    def _transport(self) -> asyncio.Transport:
        assert self.request.transport is not None
        return self.request.transport

    async def _gone(self) -> NoReturn:
        """The connection is lost by our own doing; the server cancels its handler for that."""
        self.attempt.ended.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")
