"""What a model reads and writes, in no provider's dialect."""

import msgspec


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model asked for it. `arguments` is the model's own JSON text, maybe malformed."""

    id: str
    name: str
    arguments: str


class SystemMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="system"):
    content: str


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="user"):
    content: str


class ProviderBlocks(msgspec.Struct, frozen=True, kw_only=True):
    """Opaque parts of a reply (thinking signatures and the like). Only their writer may read them."""

    provider: str
    blocks: tuple[msgspec.Raw, ...] = ()


class AssistantMessage(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="assistant", omit_defaults=True
):
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    provider_blocks: ProviderBlocks | None = None


class ToolMessage(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="tool", omit_defaults=True
):
    """The result of one tool call. A failure is a result too: the model reads `content` either way."""

    tool_call_id: str
    content: str
    failed: bool = False


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def with_result(messages: tuple[Message, ...], result: ToolMessage) -> tuple[Message, ...]:
    """`messages` and one more tool result. Results stand in their calls' order, whichever came first."""
    end = len(messages)
    while end and isinstance(messages[end - 1], ToolMessage):
        end -= 1
    reply = messages[end - 1] if end else None
    if not isinstance(reply, AssistantMessage):
        return (*messages, result)
    place = {call.id: number for number, call in enumerate(reply.tool_calls)}
    results = [message for message in (*messages[end:], result) if isinstance(message, ToolMessage)]
    results.sort(key=lambda message: place.get(message.tool_call_id, len(place)))
    return (*messages[:end], *results)


def unanswered(messages: tuple[Message, ...]) -> tuple[ToolCall, ...]:
    """The calls of the last reply that have no result, if nothing but results follows it."""
    end = len(messages)
    while end and isinstance(messages[end - 1], ToolMessage):
        end -= 1
    reply = messages[end - 1] if end else None
    if not isinstance(reply, AssistantMessage):
        return ()
    done = {message.tool_call_id for message in messages[end:] if isinstance(message, ToolMessage)}
    return tuple(call for call in reply.tool_calls if call.id not in done)


def flaw_in(messages: tuple[Message, ...], *, open_at_the_end: bool = False) -> str | None:
    """Why no provider would take these messages: a tool call without its result, or the other way round.

    `open_at_the_end`: the calls of the last reply will get their results before a provider sees them.
    """
    awaited: list[str] = []
    for number, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in awaited:
                return f"messages[{number}] is the result of no tool call before it: {message.tool_call_id!r}"
            awaited.remove(message.tool_call_id)
        elif awaited:
            return f"messages[{number}] comes before the result of tool call {awaited[0]!r}"
        elif isinstance(message, AssistantMessage):
            awaited = [call.id for call in message.tool_calls]
            if len(set(awaited)) < len(awaited):
                return f"messages[{number}] has two tool calls of one id"
    return f"tool call {awaited[0]!r} has no result" if awaited and not open_at_the_end else None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one or more model calls. Cached input is part of the input, reasoning of the output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens
