"""A streamed answer taken in, read by read, until nothing that matters can follow."""

import logging

import msgspec

from app.models.dialect import WireStream
from app.models.port import ModelCallError
from app.models.sse import SseEvent, SseOverflow, SseParser
from domain.failure import CallFailure, FailureKind

log = logging.getLogger(__name__)

MAX_STREAM_BYTES = 128 * 1024 * 1024
"""Of a whole stream. Each piece of an answer comes in a wrapping that is many times its size."""


class StreamReading:
    """Turns bytes into text. `failure` ends the answer, after the text that came before it."""

    def __init__(self, wire: WireStream, provider: str, max_bytes: int = MAX_STREAM_BYTES) -> None:
        self._wire = wire
        self._provider = provider
        self._parser = SseParser()
        self._max_bytes = max_bytes
        self._left = max_bytes
        self.over = False
        self.failure: CallFailure | None = None

    def take(self, data: bytes) -> str:
        """The text in these bytes; no bytes are the end of the response."""
        self.over = not data
        pieces: list[str] = []
        try:
            self._count(data)
            for event in self._parser.feed(data) if data else self._parser.close():
                pieces.append(self._read(event))
                if self._wire.done:
                    self.over = True
                    break
        except ModelCallError as error:
            self._fail(error.failure)
        except SseOverflow as error:
            self._fail(CallFailure(kind=FailureKind.UNREADABLE, message=str(error)))
        return "".join(pieces)

    def _count(self, data: bytes) -> None:
        """A stream that never ends must not fill the memory of this host, nor its log."""
        self._left -= len(data)
        if self._left < 0:
            raise SseOverflow(f"an answer of more than {self._max_bytes} bytes")

    def _read(self, event: SseEvent) -> str:
        try:
            return self._wire.read(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if not self.over:  # the last event of a cut stream is not broken, it is cut
                log.warning(
                    "broken stream event skipped",
                    extra={"provider": self._provider, "event_bytes": len(event.data)},
                )
            return ""

    def _fail(self, failure: CallFailure) -> None:
        self.over = True
        if not self._wire.finished:
            self.failure = failure
