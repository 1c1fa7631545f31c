"""One call to one link: the request that it gets, and the text that comes back, told as it arrives."""

from collections.abc import Callable
from contextlib import aclosing

from app.models.port import ModelAdapter, ModelCallError, ModelReply, ModelRequest, TextChunk
from app.supervision.delta_window import DeltaWindow
from domain.failure import CallFailure, FailureKind
from domain.messages import AssistantMessage, Message, UserMessage
from domain.seam import Seam

GO_ON = (
    "Your answer was cut off where the text above ends. Go on from exactly there. "
    "Do not repeat anything and do not comment on the interruption."
)


def to_carry_on(messages: tuple[Message, ...], text: str, *, prefill: bool) -> tuple[Message, ...]:
    """A conversation whose next reply carries `text` on: as the reply's own beginning, or by instruction."""
    begun = AssistantMessage(content=text)
    last = messages[-1] if messages else None
    if isinstance(last, AssistantMessage) and text.startswith(last.content):
        messages = messages[:-1]  # a text that its output limit ended stands there already
    return (*messages, begun) if prefill else (*messages, begun, UserMessage(content=GO_ON))


async def complete(adapter: ModelAdapter, request: ModelRequest, seam: Seam) -> ModelReply:
    """The reply in one piece, without what it repeats."""
    reply = await adapter.complete(request)
    return _with_text(reply, seam.feed(reply.message.content) + seam.rest())


async def stream(
    adapter: ModelAdapter,
    request: ModelRequest,
    seam: Seam,
    window: DeltaWindow,
    delivered: Callable[[str], None],
) -> ModelReply:
    """The reply, its text told as it arrives through `window`; `delivered` hears every new piece at once."""
    reply: ModelReply | None = None
    new: list[str] = []

    def tell(text: str) -> None:
        if text:
            new.append(text)
            delivered(text)
            window.add(text)

    try:
        async with aclosing(adapter.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, TextChunk):
                    tell(seam.feed(part.text))
                else:
                    reply = part
        tell(seam.rest())
    finally:
        window.flush()
    if reply is None:
        raise ModelCallError(CallFailure(kind=FailureKind.INTERNAL, message="the adapter gave no reply"))
    return _with_text(reply, "".join(new))


def _with_text(reply: ModelReply, text: str) -> ModelReply:
    """The reply with what is new in it for its text."""
    if text == reply.message.content:
        return reply
    message = AssistantMessage(
        content=text, tool_calls=reply.message.tool_calls, provider_blocks=reply.message.provider_blocks
    )
    return ModelReply(message=message, finish=reply.finish, usage=reply.usage)
