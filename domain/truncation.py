"""A tool call in which its reply reached the output limit: what it was to be, nobody knows."""

from domain import strict_json
from domain.events import FinishReason
from domain.messages import AssistantMessage, ToolCall
from domain.run import Run


def is_cut_off(run: Run, call: ToolCall) -> bool:
    """Whether the run's last reply ended within this call.

    Arguments that are an object with something in it were written to their end. Those of a call that was cut
    before its first argument look like those of a call without any, so only another reply can tell.
    """
    return run.finish is FinishReason.LENGTH and _is_last(run, call) and not _is_whole(call.arguments)


def _is_last(run: Run, call: ToolCall) -> bool:
    replies = (message for message in reversed(run.transcript) if isinstance(message, AssistantMessage))
    reply = next(replies, None)
    return reply is not None and bool(reply.tool_calls) and reply.tool_calls[-1].id == call.id


def _is_whole(arguments: str) -> bool:
    try:
        written = strict_json.parse(arguments)
    except ValueError:
        return False
    return isinstance(written, dict) and bool(written)
