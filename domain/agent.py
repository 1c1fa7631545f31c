"""What an agent is: its instructions, the links of its model binding, and the tools it may call."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from domain.binding import Binding as Binding
from domain.binding import Compaction as Compaction
from domain.binding import Link as Link
from domain.binding import Loop as Loop
from domain.binding import ModelOptions as ModelOptions

# `$` alone would let a last line feed pass.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(?!\n)$"
Name = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]


class FallbackMode(StrEnum):
    """What the next link is given: the turn so far, or the turn's input (CHAIN-6)."""

    CONTINUE = "continue"
    RESTART = "restart"


class StreamRecovery(StrEnum):
    """What becomes of an answer that is cut in the middle: the run ends, or the next link goes on."""

    CUT = "cut"
    CONTINUE = "continue"


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent as defined in code or settings. A run records the definition it started with."""

    name: Name
    instructions: str = ""
    description: str = ""
    provider: str
    model: str
    fallbacks: tuple[Link, ...] = ()
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    """Other agents that it may call, as if they were tools. Each call is a run of its own, below this one."""
    options: ModelOptions = ModelOptions()
    parameters: dict[str, Any] = {}
    """Each with its default; None must be given by the caller. `{{ name }}` in the instructions means it."""
    provider_settings: dict[str, Any] = {}
    """Extra fields of the primary provider's request body. They do not carry over to a fallback (CHAIN-5)."""

    fallback_mode: FallbackMode = FallbackMode.CONTINUE
    stream_recovery: StreamRecovery = StreamRecovery.CUT
    cache_replies: bool = False
    """Give a reply again to the very same request. For agents whose answers depend on nothing else."""
    deliverable_tool: str | None = None
    """A tool that a turn must have called with success (CHAIN-9)."""
    response_schema: dict[str, Any] | None = None
    """A JSON schema that the answer must meet (CHAIN-9)."""
    max_length_continuations: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """In place of `turn.max_length_continuations`, for this agent (CHAIN-8)."""
    compaction: Compaction | None = None
    """None: the model is always shown the whole conversation (CHAIN-13)."""
    loop: Loop | None = None
    """A criterion that a judge holds the answer against (CHAIN-13)."""

    @property
    def links(self) -> tuple[Link, ...]:
        return (Link(provider=self.provider, model=self.model), *self.fallbacks)
