"""Server-sent events: frames, the answers that carry them, and the one timer that keeps idle ones open."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import msgspec
from aiohttp import ClientConnectionResetError, web
from prometheus_client import Gauge

from app.http.display import encode, frame_data
from app.http.errors import KeyEnded
from app.http.in_flight import HostStopping, InFlight
from app.http.negotiation import EVENT_STREAM
from app.http.problems import Problem, is_crash, problem_of
from app.http.request_keys import PRINCIPAL, REQUEST_ID
from app.store.feed import Frame
from domain.events import Recorded
from domain.ids import RunId

log = logging.getLogger(__name__)

KEEP_ALIVE = b": keep-alive\n\n"
_PIECE_BYTES = 64 * 1024

STALLED_S = 60.0
"""A client that takes nothing for so long is let go. It can resume after its last frame."""


def frames(run_id: RunId, batch: Iterable[Frame], display_limit: int) -> Iterator[bytes]:
    """A frame for each, in pieces that go out in one write each. What is recorded has its number.

    Made one by one: whoever waits between them for a client that is behind holds no more than a piece.
    """
    piece: list[bytes] = []
    size = 0
    for frame in batch:
        piece.append(_frame(run_id, frame, display_limit))
        size += len(piece[-1])
        if size >= _PIECE_BYTES:
            yield b"".join(piece)
            piece.clear()
            size = 0
    if piece:
        yield b"".join(piece)


def last_number(batch: Sequence[Frame], before: int | None) -> int | None:
    """The number of the last frame that has one."""
    return next((frame.sequence for frame in reversed(batch) if isinstance(frame, Recorded)), before)


def _frame(run_id: RunId, frame: Frame, display_limit: int) -> bytes:
    number = b"id: %d\n" % frame.sequence if isinstance(frame, Recorded) else b""
    name = type(frame.event).__name__.encode()
    return b"%bevent: %b\ndata: %b\n\n" % (number, name, frame_data(run_id, frame, display_limit))


def unnumbered(event: str, data: object) -> bytes:
    """A frame without an id: a client that resumes does not count it."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), encode(data))


class EventStream(web.StreamResponse):
    """An open answer. It is of one task, which sends, and is looked after by `OpenStreams`."""

    def __init__(self, request: web.Request, headers: Mapping[str, str]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **headers})
        self.content_type = EVENT_STREAM
        self._request = request
        self._sent_at = asyncio.get_running_loop().time()
        self._allowed: asyncio.Timeout | None = None
        self._forbidden = False
        self.position: int | None = None
        """The number of the last frame that was sent, for whoever has to go on elsewhere."""

    async def begin(self) -> None:
        """Let the client know at once that there will be a stream."""
        await self.prepare(self._request)

    @property
    def key_prefix(self) -> str | None:
        """How the key begins with which it was asked for, if it was one."""
        principal = self._request.get(PRINCIPAL)
        return None if principal is None else principal.key_prefix

    def forbid(self) -> None:
        """Its key is not in force any more: what sends in `while_allowed` raises KeyEnded."""
        self._forbidden = True
        if self._allowed is not None:
            self._allowed.reschedule(asyncio.get_running_loop().time())
            self._allowed = None

    @asynccontextmanager
    async def while_allowed(self) -> AsyncIterator[None]:
        timer = asyncio.timeout(0 if self._forbidden else None)
        try:
            async with timer:
                self._allowed = timer
                yield
        except TimeoutError:
            if timer.expired():
                raise KeyEnded from None
            raise
        finally:
            self._allowed = None

    @property
    def stalled(self) -> bool:
        """Whether the client is so far behind that a send would wait for it."""
        return self._request.protocol.writing_paused

    async def send(self, encoded: bytes) -> None:
        """Write whole frames in one go; wait while the client is behind. Raise once the client is gone."""
        self._sent_at = asyncio.get_running_loop().time()
        if not self.prepared:
            await self.prepare(self._request)
        await self.write(encoded)

    async def fail(self, told: Problem) -> None:
        """Say what went wrong, since the status line is long gone (HTTP-3)."""
        told = msgspec.structs.replace(
            told,
            instance=self._request.path,
            request_id=self._request.get(REQUEST_ID),
            last_event_id=msgspec.UNSET if self.position is None else self.position,
        )
        with suppress(ClientConnectionResetError):
            await self.send(unnumbered("error", told))

    async def look_after(self, now: float, quiet_s: float) -> None:
        """Send a comment if nothing was sent for `quiet_s`; give up on a client that takes nothing."""
        quiet_for = now - self._sent_at
        if self.stalled:
            if quiet_for >= STALLED_S and self._request.transport is not None:
                self._request.transport.abort()
        elif quiet_for >= quiet_s:
            with suppress(ClientConnectionResetError):
                await self.send(KEEP_ALIVE)


S = TypeVar("S", bound=EventStream)


class OpenStreams:
    """The event streams open on this host. One timer serves them all: an idle stream costs no task more."""

    def __init__(self, keepalive_s: float, gauge: Gauge, in_flight: InFlight | None = None) -> None:
        self._keepalive_s = keepalive_s
        self._gauge = gauge
        self._in_flight = InFlight() if in_flight is None else in_flight
        self._open: set[EventStream] = set()

    @asynccontextmanager
    async def open(self, stream: S) -> AsyncIterator[S]:
        """An answer under way. What fails in here is told in the stream; a client that left is no failure."""
        await stream.begin()
        self._open.add(stream)
        self._gauge.inc()
        try:
            async with self._in_flight.until_stop(), stream.while_allowed():
                yield stream
        except ClientConnectionResetError:
            pass
        except Exception as error:
            if is_crash(error):
                log.exception("stream.crashed")
            if isinstance(error, HostStopping):
                stream.force_close()
            if not stream.stalled:
                await stream.fail(problem_of(error))
        finally:
            self._gauge.dec()
            self._open.discard(stream)

    async def keep_open(self) -> None:
        """For as long as the host lives: no stream is silent for longer than the keep-alive time."""
        tick_s = self._keepalive_s / 4
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(tick_s)
            for stream in tuple(self._open):
                await stream.look_after(loop.time(), self._keepalive_s - tick_s)

    def __iter__(self) -> Iterator[EventStream]:
        return iter(tuple(self._open))

    def close(self) -> None:
        """Have every stream end, with a frame that says why and where it can go on (DRAIN)."""
        self._in_flight.stop()
