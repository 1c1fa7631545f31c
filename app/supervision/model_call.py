"""One call to one link: the text that comes back, told as it arrives, without what it repeats."""

from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from time import perf_counter

import msgspec

from app.faults import fault_point
from app.metrics import Metrics
from app.models.port import (
    MaySend,
    ModelAdapter,
    ModelCallError,
    ModelReply,
    ModelRequest,
    NotSent,
    TextChunk,
    always,
)
from domain.agent import Link
from domain.failure import CallFailure, FailureKind
from domain.messages import AssistantMessage
from domain.seam import Seam

Tell = Callable[[str], None]

_NO_REPLY = CallFailure(kind=FailureKind.INTERNAL, message="the adapter gave no reply")
_NOTHING_NEW = CallFailure(kind=FailureKind.EMPTY, message="the answer only repeats what it was to carry on")


async def call_model(
    adapter: ModelAdapter, request: ModelRequest, before: str, tell: Tell | None, may_send: MaySend = always
) -> ModelReply:
    """The reply, with what it adds to the text `before` it. `tell` hears it as it comes; None: nobody does.

    A failure is after content only if something of it was told: what nobody heard may be asked for again.
    """
    seam, told = Seam(before), False
    new: list[str] = []

    def hear(text: str) -> None:
        nonlocal told
        if text:
            new.append(text)
            if tell is not None:
                told = True
                tell(text)

    watched = tell is not None
    try:
        reply = await _listen(adapter, request, may_send, lambda text: hear(seam.feed(text)), watched)
    except ModelCallError as error:
        raise ModelCallError(msgspec.structs.replace(error.failure, content_delivered=told)) from None
    hear(seam.rest())
    return _with_text(reply, "".join(new))


@contextmanager
def timed(metrics: Metrics, link: Link) -> Iterator[None]:
    """Around a call: how long it took, whatever came of it. One that was not sent was none."""
    began, was_made = perf_counter(), True
    try:
        yield
    except NotSent:
        was_made = False
        raise
    finally:
        if was_made:
            metrics.model_call_seconds.labels(link.provider, link.model).observe(perf_counter() - began)
            fault_point("model.call.after")


async def _listen(
    adapter: ModelAdapter, request: ModelRequest, may_send: MaySend, hear: Tell, watched: bool
) -> ModelReply:
    """The reply, streamed also where nobody watches but a silent provider is to be told from a slow one."""
    if not watched and request.first_content_timeout_s is None:
        reply = await adapter.complete(request, may_send)
        hear(reply.message.content)
        return reply
    whole: ModelReply | None = None
    async with aclosing(adapter.stream(request, may_send)) as parts:
        async for part in parts:  # to its end, so that the connection can serve another call
            if isinstance(part, TextChunk):
                hear(part.text)
            else:
                whole = part
    if whole is None:
        raise ModelCallError(_NO_REPLY)
    return whole


def _with_text(reply: ModelReply, text: str) -> ModelReply:
    message = reply.message
    if text == message.content:
        return reply
    if not text and not message.tool_calls:
        raise ModelCallError(_NOTHING_NEW)
    # What its provider keeps of the reply repeats what was left out of the text.
    return ModelReply(
        message=AssistantMessage(content=text, tool_calls=message.tool_calls),
        finish=reply.finish,
        usage=reply.usage,
    )
