"""Which models are called, and in which order; and what an agent calls others for besides its own."""

from typing import Annotated

import msgspec


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One provider and model of a chain: the primary or a fallback (CHAIN-1)."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


class ModelOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Sampling options, the same on every link of a chain (CHAIN-5). None leaves the provider's default."""

    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None


class Binding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The models of a call that an agent makes besides its own, with fallbacks of their own (CHAIN-13)."""

    provider: str
    model: str
    fallbacks: tuple[Link, ...] = ()
    options: ModelOptions = ModelOptions()

    @property
    def links(self) -> tuple[Link, ...]:
        return (Link(provider=self.provider, model=self.model), *self.fallbacks)


class Compaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a summary stands for the older part of the conversation, and who writes it (CHAIN-13)."""

    summarizer: Binding
    threshold: Annotated[int, msgspec.Meta(ge=1)]
    """Tokens of context. A call that would be made with more is made after the older part was summarised."""
    keep_recent: Annotated[int, msgspec.Meta(ge=1)] = 6
    """So many of the last messages stay. A reply and the results of its tool calls count as one."""


class Loop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an answer must be like, as a judge sees it, before the turn may end with it (CHAIN-13)."""

    criterion: Annotated[str, msgspec.Meta(min_length=1)]
    judge: Binding
    max_rounds: Annotated[int, msgspec.Meta(ge=0)] = 3
    """How often an answer is sent back with the judge's reason, before the run fails."""
