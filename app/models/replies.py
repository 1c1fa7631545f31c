"""The end of a successful answer: a reply, or the failure that it turns out to be."""

import msgspec

from app.models.port import ModelCallError, ModelReply
from domain.events import FinishReason
from domain.failure import CallFailure, FailureKind
from domain.messages import AssistantMessage, ProviderBlocks, ToolCall, Usage

FILTERED = CallFailure(
    kind=FailureKind.CONTENT_FILTER, message="the provider's filter ended the answer", code="content_filter"
)
_EMPTY = CallFailure(kind=FailureKind.EMPTY, message="the answer has neither text nor a tool call")
_NAMELESS = CallFailure(kind=FailureKind.UNREADABLE, message="a tool call without a name")

MAX_CONTENT_BYTES = 16 * 1024 * 1024
"""Of a reply, which is one event of the log: a larger one would hold up everybody else's events for long."""

MOST_TOKENS = 10**12
"""More than any call can have used. Sums of such numbers still fit wherever they are kept."""

_GIANT = CallFailure(
    kind=FailureKind.UNREADABLE, message=f"an answer with more than {MAX_CONTENT_BYTES} bytes of content"
)


def reply_of(
    text: str,
    calls: tuple[ToolCall, ...],
    *,
    length: bool,
    usage: Usage,
    blocks: ProviderBlocks | None = None,
) -> ModelReply:
    """The reply. Raise ModelCallError for an empty one, a giant, and for a call of no tool at all."""
    if not text and not calls:
        raise ModelCallError(_EMPTY)
    if not all(call.name for call in calls):
        raise ModelCallError(_NAMELESS)
    if _size(text, calls, blocks) > MAX_CONTENT_BYTES:
        raise ModelCallError(_GIANT)
    finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return ModelReply(
        message=AssistantMessage(content=text, tool_calls=calls, provider_blocks=blocks),
        finish=FinishReason.LENGTH if length else finish,
        usage=_believable(usage),
    )


def _size(text: str, calls: tuple[ToolCall, ...], blocks: ProviderBlocks | None) -> int:
    arguments = sum(len(call.arguments) for call in calls)
    return len(text) + arguments + sum(len(bytes(block)) for block in (blocks.blocks if blocks else ()))


def _believable(usage: Usage) -> Usage:
    """The usage without numbers that count nothing. A provider may say what it likes, and some do."""
    counts = msgspec.structs.asdict(usage)
    return Usage(**{name: count if 0 <= count <= MOST_TOKENS else 0 for name, count in counts.items()})
