"""What the rest of the service asks of a model provider, whichever wire it speaks."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol

import msgspec

from domain.agent import ModelOptions
from domain.events import FinishReason
from domain.failure import CallFailure
from domain.messages import AssistantMessage, Message, Usage
from domain.tool import ToolSpec as ToolSpec


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call. The same request goes to every link of a chain; only `model` differs (CHAIN-5)."""

    model: str
    messages: tuple[Message, ...]
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    options: ModelOptions = ModelOptions()
    response_schema: dict[str, Any] | None = None
    """The answer is to be JSON of this schema; None leaves its form to the model."""
    provider_settings: dict[str, Any] = {}
    first_content_timeout_s: float | None = None
    """How long to wait for the first content; None leaves only the caller's own deadline (CLASS-2)."""


class TextChunk(msgspec.Struct, frozen=True):
    """Some text of the answer, as it arrives. Never empty."""

    text: str


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole reply: text, tool calls or both. Its tool calls have ids that are unique within the reply."""

    message: AssistantMessage
    finish: FinishReason
    usage: Usage = Usage()


class ModelCallError(Exception):
    """A call failed. `failure` is what was seen; what to do about it is decided elsewhere (CLASS-1)."""

    def __init__(self, failure: CallFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class StillSilent(asyncio.CancelledError):
    """The call was cancelled, and until then nothing of an answer had come, not even reasoning."""


class NotSent(Exception):
    """The call was not to be made any more, and nothing of it has left. No failure of anybody's."""


MaySend = Callable[[], bool]
"""Asked when the connection is there, right before the request is written to it. No means NotSent."""


def always() -> bool:
    """Nobody has anything against the call."""
    return True


class ModelAdapter(Protocol):
    """One configured provider. Every failure of a call is a ModelCallError; cancelling closes the connection.

    A call that is cancelled before any of its answer has come ends with StillSilent: whoever knows why it was
    cancelled decides whether that says something about the provider.

    An empty success (neither text nor tool calls) is a failure of kind EMPTY, and a filtered one of kind
    CONTENT_FILTER. An adapter never retries: that is the chain's business.
    """

    async def complete(self, request: ModelRequest, may_send: MaySend = always) -> ModelReply:
        """Make the call unstreamed."""
        ...

    def stream(
        self, request: ModelRequest, may_send: MaySend = always
    ) -> AsyncGenerator[TextChunk | ModelReply, None]:
        """Make the call streamed: text chunks, then exactly one ModelReply with everything.

        Close it when leaving early.
        """
        ...

    async def close(self) -> None:
        """Free connections. Calls in flight fail."""
        ...
