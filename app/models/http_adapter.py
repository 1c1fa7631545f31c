"""A model provider behind HTTP: one call, streamed or not, in whichever dialect."""

from collections.abc import AsyncGenerator

import msgspec

from app.models.dialect import Dialect, WireStream
from app.models.exchange import Exchange
from app.models.http import HttpSession
from app.models.patience import STOPPING, TimeLimits
from app.models.port import MaySend, ModelCallError, ModelReply, ModelRequest, TextChunk, always
from app.models.stream_reading import StreamReading
from domain.failure import CallFailure, FailureKind

_PAGES = frozenset({"text/html", "application/xhtml+xml", "application/xml", "text/xml"})


class HttpAdapter:
    """Makes calls and reports how they went. What to do about a failure is decided elsewhere."""

    def __init__(self, name: str, dialect: Dialect, http: HttpSession, limits: TimeLimits) -> None:
        self._name = name
        self._dialect = dialect
        self._http = http
        self._limits = limits
        self._open: set[Exchange] = set()
        self._closed = False

    async def complete(self, request: ModelRequest, may_send: MaySend = always) -> ModelReply:
        exchange = self._begin(request, may_send, stream=False)
        try:
            async with exchange:
                return await self._read_whole(request, exchange)
        finally:
            self._open.discard(exchange)

    async def stream(
        self, request: ModelRequest, may_send: MaySend = always
    ) -> AsyncGenerator[TextChunk | ModelReply, None]:
        exchange = self._begin(request, may_send, stream=True)
        try:
            async with exchange:
                if exchange.media_type in _PAGES:
                    raise exchange.unreadable(f"a page ({exchange.media_type}) in place of an answer")
                if exchange.media_type.endswith("json"):
                    whole = await self._read_whole(request, exchange)
                    if whole.message.content:
                        yield TextChunk(whole.message.content)
                    yield whole
                    return
                wire = self._dialect.stream(request)
                reading = StreamReading(wire, self._name)
                while not reading.over:
                    text = reading.take(await _more(exchange, wire))
                    exchange.patience.begun = wire.begun
                    if wire.finished:
                        exchange.patience.finish()
                    if text:
                        exchange.patience.delivered = True
                        yield TextChunk(text)
                yield _reply(exchange, wire, reading.failure)
                await exchange.drain()
        finally:
            self._open.discard(exchange)

    async def close(self) -> None:
        self._closed = True
        for exchange in tuple(self._open):
            exchange.abort()

    def _begin(self, request: ModelRequest, may_send: MaySend, *, stream: bool) -> Exchange:
        if self._closed:
            raise ModelCallError(STOPPING)
        post = self._dialect.post(request, stream=stream)
        exchange = Exchange(self._http, post, self._limits, request.first_content_timeout_s, may_send)
        self._open.add(exchange)
        return exchange

    async def _read_whole(self, request: ModelRequest, exchange: Exchange) -> ModelReply:
        body = await exchange.body()
        if not body.strip():
            raise exchange.patience.failed(FailureKind.RESET, "the answer ended before it began")
        try:
            return self._dialect.read_body(request, body)
        except ModelCallError as error:
            failure = exchange.censored(error.failure)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise exchange.unreadable("the answer is not what this wire promises") from None
        raise exchange.patience.marked(failure)


async def _more(exchange: Exchange, wire: WireStream) -> bytes:
    """The next bytes. After the finish reason, whatever goes wrong is just the end."""
    try:
        return await exchange.read()
    except ModelCallError:
        if wire.finished:
            return b""
        raise


def _reply(exchange: Exchange, wire: WireStream, failure: CallFailure | None) -> ModelReply:
    if failure is not None:
        raise exchange.patience.marked(exchange.censored(failure))
    if not wire.finished:
        raise exchange.patience.failed(FailureKind.RESET, "the stream ended before its finish reason")
    try:
        return wire.reply()
    except ModelCallError as error:
        failure = exchange.censored(error.failure)
    raise exchange.patience.marked(failure)
