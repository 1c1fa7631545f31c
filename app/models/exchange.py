"""One POST and its answer, under the call's time limits; what goes wrong is a ModelCallError."""

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import Self, TypeVar

import aiohttp
import msgspec

from app.models.http import HttpSession, Post
from app.models.http_errors import translated
from app.models.patience import STOPPING, Patience, TimeLimits
from app.models.port import MaySend, ModelCallError, StillSilent, always
from app.models.wire_errors import failure_of_status
from domain.failure import CallFailure, FailureKind

MAX_BODY_BYTES = 32 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_ERROR_BODY_S = 5.0
_DRAIN_S = 0.25

T = TypeVar("T")


class Exchange:
    """One POST and its answer. Leaving it closes the connection, unless the answer was read to its end."""

    def __init__(
        self,
        http: HttpSession,
        post: Post,
        limits: TimeLimits,
        first_content_s: float | None,
        may_send: MaySend = always,
    ) -> None:
        self.patience = Patience(limits, first_content_s)
        self._http = http
        self._post = post
        self._connect_s = limits.connect_s
        self._may_send = may_send
        self._response: aiohttp.ClientResponse | None = None
        self._timer: asyncio.Timeout | None = None
        self._aborted = False
        self._broken: CallFailure | None = None

    async def __aenter__(self) -> Self:
        self._response = await self._within(self._http.send(self._post, self._connect_s, self._may_send))
        if not 200 <= self._response.status < 300:
            try:
                raise await self._refusal(self._response)
            finally:
                self._leave(self._response)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(self.response)

    @property
    def response(self) -> aiohttp.ClientResponse:
        if self._response is None:
            raise RuntimeError("the exchange has not been entered")
        return self._response

    @property
    def media_type(self) -> str:
        """Lower case and without parameters; empty where the provider gave none."""
        return self.response.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def read(self) -> bytes:
        """Whatever has arrived, after waiting for something; nothing at the end of the answer."""
        content = self.response.content
        if self._broken is None and content.exception() is None:
            data = content.read_nowait()
            if data or content.at_eof():
                return data
        if self._broken is None:
            try:
                return await self._within(content.readany())
            except ModelCallError as error:
                self._broken = error.failure
            if data := _hidden(content):
                return data
        raise self.patience.marked(self._broken)

    async def body(self) -> bytes:
        """The whole answer."""
        parts: list[bytes] = []
        size = 0
        while data := await self.read():
            # Servers that keep a connection warm send white space ahead of the answer: that is no content.
            self.patience.begun = self.patience.begun or bool(data.strip())
            parts.append(data)
            size += len(data)
            if size > MAX_BODY_BYTES:
                raise self.unreadable(f"an answer of more than {MAX_BODY_BYTES} bytes")
        return b"".join(parts)

    async def drain(self) -> None:
        """Take what is left if it comes at once, so that the connection can serve another call."""
        content = self.response.content
        try:
            async with asyncio.timeout(_DRAIN_S):
                while not content.at_eof():
                    await content.readany()
        except (TimeoutError, aiohttp.ClientError, OSError):
            self.response.close()

    def abort(self) -> None:
        """Make the call fail, wherever it is."""
        self._aborted = True
        if self._response is not None:
            self._response.close()
        elif self._timer is not None:
            self._timer.reschedule(asyncio.get_running_loop().time())

    def unreadable(self, message: str) -> ModelCallError:
        return self.patience.failed(FailureKind.UNREADABLE, message, self.response.status)

    def censored(self, failure: CallFailure) -> CallFailure:
        """The failure without this call's secrets, should the provider have repeated one."""
        message = failure.message
        for secret in self._post.secrets:
            message = message.replace(secret, "***")
        return msgspec.structs.replace(failure, message=message)

    async def _refusal(self, response: aiohttp.ClientResponse) -> ModelCallError:
        """What a status other than success stands for. Its body is read for a moment only."""
        body = b""
        try:
            async with asyncio.timeout(_ERROR_BODY_S):
                while len(body) < _MAX_ERROR_BYTES and not response.content.at_eof():
                    body += await response.content.readany()
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass  # the status alone says enough
        return self.patience.marked(self.censored(failure_of_status(response.status, response.headers, body)))

    async def _within(self, work: Awaitable[T]) -> T:
        """Await the work for as long as the call may wait now; raise what goes wrong as a ModelCallError."""
        self._timer = timer = asyncio.timeout_at(self.patience.until())
        try:
            async with timer:
                return await work
        except asyncio.CancelledError as cancelled:
            if self.patience.silent:
                raise StillSilent from cancelled
            raise
        except (aiohttp.ClientError, OSError) as error:
            failure = translated(error)
        # Raised out here, because an error of aiohttp holds the request, whose headers hold the key.
        if self._aborted or self._http.closed:
            raise self.patience.marked(STOPPING)
        raise self.patience.lost() if timer.expired() else self.patience.marked(failure)

    def _leave(self, response: aiohttp.ClientResponse) -> None:
        if response.content.at_eof():
            response.release()
        else:
            response.close()


def _hidden(content: aiohttp.StreamReader) -> bytes:
    """What arrived before the connection broke: a reader that has an exception no longer gives it out."""
    error = content.exception()
    content.set_exception(None)  # type: ignore[arg-type]
    try:
        return content.read_nowait()
    finally:
        if error is not None:
            content.set_exception(error)
