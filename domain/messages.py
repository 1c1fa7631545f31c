"""What a model reads and writes, in no provider's dialect."""

import msgspec


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model asked for it. `arguments` is the model's own JSON text, which may be malformed."""

    id: str
    name: str
    arguments: str


class SystemMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="system"):
    content: str


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="user"):
    content: str


class ProviderBlocks(msgspec.Struct, frozen=True, kw_only=True):
    """Opaque parts of a reply (thinking signatures and the like) that only the provider which wrote them may read."""

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


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one or more model calls. Cached input is part of the input, reasoning is part of the output."""

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
