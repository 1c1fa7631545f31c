"""The end of a successful answer: a reply, or the failure that it turns out to be."""

from app.models.port import ModelCallError, ModelReply
from domain.events import FinishReason
from domain.failure import CallFailure, FailureKind
from domain.messages import AssistantMessage, ProviderBlocks, ToolCall, Usage

FILTERED = CallFailure(
    kind=FailureKind.CONTENT_FILTER, message="the provider's filter ended the answer", code="content_filter"
)
_EMPTY = CallFailure(kind=FailureKind.EMPTY, message="the answer has neither text nor a tool call")
_NAMELESS = CallFailure(kind=FailureKind.UNREADABLE, message="a tool call without a name")


def reply_of(
    text: str,
    calls: tuple[ToolCall, ...],
    *,
    length: bool,
    usage: Usage,
    blocks: ProviderBlocks | None = None,
) -> ModelReply:
    """The reply. Raise ModelCallError for an empty one, and for a call of no tool at all."""
    if not text and not calls:
        raise ModelCallError(_EMPTY)
    if not all(call.name for call in calls):
        raise ModelCallError(_NAMELESS)
    finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    return ModelReply(
        message=AssistantMessage(content=text, tool_calls=calls, provider_blocks=blocks),
        finish=FinishReason.LENGTH if length else finish,
        usage=usage,
    )
