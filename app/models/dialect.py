"""What one provider's wire adds to the common way of making a call. Dialects do no IO."""

from typing import Protocol

from app.models.http import Post
from app.models.port import ModelReply, ModelRequest
from app.models.sse import SseEvent


class WireStream(Protocol):
    """One streamed answer being read. Errors that the stream reports are raised as ModelCallError."""

    @property
    def begun(self) -> bool:
        """The model has produced something, be it text, reasoning or a tool call."""
        ...

    @property
    def finished(self) -> bool:
        """The finish reason was seen: what ends now is complete."""
        ...

    @property
    def done(self) -> bool:
        """Nothing that matters can follow."""
        ...

    def read(self, event: SseEvent) -> str:
        """Take one event in; return the text that it adds. Raise msgspec.DecodeError for a broken one."""
        ...

    def reply(self) -> ModelReply:
        """The whole reply, once finished. Raise ModelCallError for an empty or filtered one."""
        ...


class Dialect(Protocol):
    """One provider's wire."""

    def post(self, request: ModelRequest, *, stream: bool) -> Post:
        """The request as this provider wants it."""
        ...

    def stream(self, request: ModelRequest) -> WireStream:
        """A reader for the streamed answer to this request."""
        ...

    def read_body(self, request: ModelRequest, body: bytes) -> ModelReply:
        """A whole answer. Raise ModelCallError for a failure, msgspec.DecodeError for what is no answer."""
        ...
