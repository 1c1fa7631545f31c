"""Below the routes: what comes in and is no request, or never becomes one, and how long a head may be."""

import asyncio
import logging
from http import HTTPStatus
from typing import Any, NamedTuple

from aiohttp import http_exceptions as wrong
from aiohttp import web
from aiohttp.typedefs import Handler

from app.http.problems import MEDIA_TYPE, Problem, encoded, problem, problem_of, response_of
from app.metrics import Metrics

log = logging.getLogger(__name__)

_LINE_BYTES = 8 * 1024
_FIELD_BYTES = 16 * 1024
_FIELDS = 128
_LIMITS: dict[str, Any] = {
    "max_line_size": _LINE_BYTES,
    "max_field_size": _FIELD_BYTES,
    "max_headers": _FIELDS,
}

_TOO_MANY = "Too many headers"
_NOT_HTTP = "This is no HTTP request"


class Patience(NamedTuple):
    """How long a client may be silent before it asks, and take nothing of its answer."""

    head_s: float
    write_s: float


class Listener(web.AppRunner):
    """The application behind connections of ours."""

    def __init__(
        self, application: web.Application, metrics: Metrics, patience: Patience, **options: Any
    ) -> None:
        super().__init__(application, **options, **_LIMITS)
        self._metrics = metrics
        self._patience = patience

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Connections(made, self._metrics, self._patience)


class _Connections(web.Server):
    """Makes a `Connection` of each that is accepted; otherwise the server that it is made of."""

    def __init__(self, made: web.Server, metrics: Metrics, patience: Patience) -> None:
        super().__init__(
            _answering(made.request_handler),  # type: ignore[arg-type]  # an application makes web.Requests
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=made._loop,
            **made._kwargs,
        )
        self._metrics = metrics
        self._patience = patience

    def __call__(self) -> web.RequestHandler:
        return Connection(self, self._metrics, self._patience, loop=self._loop, **self._kwargs)


def _answering(handle: Handler) -> Handler:
    """With an answer of ours to what the application refuses before its middlewares: an expectation."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if isinstance(request.protocol, Connection):
            request.protocol.head_came()
        try:
            return await handle(request)
        except web.HTTPExpectationFailed as error:
            refused = response_of(problem_of(error), request)
            refused.force_close()
            return refused

    return answer


class Connection(web.RequestHandler):
    """One client's connection. What cannot be answered by a route is answered here, and closes it."""

    __slots__ = ("_head_timer", "_metrics", "_patience", "_write_timer")

    def __init__(self, server: web.Server, metrics: Metrics, patience: Patience, **options: Any) -> None:
        super().__init__(server, **options)
        self._metrics = metrics
        self._patience = patience
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._metrics.http_connections.inc()
        loop = asyncio.get_running_loop()
        self._head_timer = loop.call_later(self._patience.head_s, self._head_is_late)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.head_came()
        self._write_goes_on()
        self._metrics.http_connections.dec()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        loop = asyncio.get_running_loop()
        self._write_timer = loop.call_later(self._patience.write_s, self._write_is_stuck)

    def resume_writing(self) -> None:
        self._write_goes_on()
        super().resume_writing()

    def head_came(self) -> None:
        """The first request is here. From now on the connection is one that is kept alive, or not."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what never came to the middleware. It always closes the connection."""
        self.head_came()
        if not isinstance(exc, wrong.HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        told = refusal_of(exc)
        self._note(told)
        answer = web.Response(body=encoded(told), status=told.status, content_type=MEDIA_TYPE)
        answer.headers.update(_HEADERS)
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **options: Any) -> None:
        """What is left of a body after its answer is read over, and may be as broken as it likes."""
        if not isinstance(options.get("exc_info"), wrong.PayloadEncodingError | web.RequestPayloadError):
            super().log_exception(*args, **options)

    def _head_is_late(self) -> None:
        """Nobody may hold a connection for ever without ever asking for something."""
        if self.transport is None:
            return
        told = problem(
            408, "head_timeout", "The head of the request did not come within server.head_timeout."
        )
        self._note(told)
        self.transport.write(_raw(told))
        self.force_close()

    def _write_goes_on(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _write_is_stuck(self) -> None:
        """Nobody may have an answer held in memory for ever."""
        if isinstance(self.transport, asyncio.Transport):
            self.transport.abort()

    def _note(self, told: Problem) -> None:
        self._metrics.http_requests.labels("OTHER", "unmatched", str(told.status)).inc()
        log.info("request.malformed", extra={"status": told.status, "detail": told.detail})


_HEADERS = {"Server": "tracon", "X-Content-Type-Options": "nosniff"}


class _Rule(NamedTuple):
    status: int
    code: str
    detail: str


_LINE_TOO_LONG = _Rule(414, "target_too_long", f"The request line has more than {_LINE_BYTES} bytes.")
_FIELD_TOO_LONG = _Rule(431, "headers_too_large", f"A header has more than {_FIELD_BYTES} bytes.")
_TOO_MANY_FIELDS = _Rule(431, "headers_too_large", f"There are more than {_FIELDS} headers.")
_ENCODING = _Rule(415, "unsupported_media_type", "Send the body as it is, or with Content-Encoding: gzip.")


def refusal_of(error: wrong.HttpProcessingError) -> Problem:
    """The problem that tells of what the parser could not make a request of."""
    match error:
        case wrong.LineTooLong(args=(_, limit, *_)):
            return problem(*(_LINE_TOO_LONG if limit == _LINE_BYTES else _FIELD_TOO_LONG))
        case wrong.ContentEncodingError():
            return problem(*_ENCODING)
        case wrong.InvalidURLError():
            return problem(400, "malformed_request", f"{_NOT_HTTP}: what it asks for is no URL.")
        case _ if error.message.startswith(_TOO_MANY):
            return problem(*_TOO_MANY_FIELDS)
        case _:
            return problem(400, "malformed_request", f"{_NOT_HTTP}: {_first_line(error.message)}.")


def _first_line(message: str) -> str:
    """What the parser says in words; below that it shows bytes."""
    words = [line.strip(" :") for line in message.splitlines() if line.strip()]
    return (words[0] if words else "it cannot be read").rstrip(".")[:200]


def _raw(told: Problem) -> bytes:
    body = encoded(told)
    lines = [
        f"HTTP/1.1 {told.status} {HTTPStatus(told.status).phrase}",
        f"Content-Type: {MEDIA_TYPE}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in _HEADERS.items()),
        "Connection: close",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
