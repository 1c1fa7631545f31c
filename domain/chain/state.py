"""Where a turn stands in its chain: its links, the one it is on, those it has used up and why (CHAIN)."""

import msgspec

from domain.agent import FallbackMode, Link
from domain.failure import CallFailure, FailureClass, RunError, error_of


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link, and what its model was declared to be able to do."""

    link: Link
    supports_tools: bool = False
    supports_prefill: bool = False
    context_window: int | None = None


class LeftLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that the turn has used up, and why. Without a failure it was skipped, not called."""

    link: Link
    reason: str
    failure_class: FailureClass | None = None
    failure: CallFailure | None = None

    @property
    def error(self) -> RunError | None:
        """What its failure is by itself; None for a link that was skipped."""
        if self.failure is None or self.failure_class is None:
            return None
        return error_of(self.link.provider, self.failure_class, self.failure)


class ChainState(msgspec.Struct, frozen=True, kw_only=True):
    """One state lives as long as its turn, so a link that was left in one step is not tried again later."""

    links: tuple[ChainLink, ...]
    needs_tools: bool = False
    mode: FallbackMode = FallbackMode.CONTINUE
    position: int = 0
    retried: bool = False
    """Whether the one retry that the link has in this step is spent (CHAIN-2)."""
    streamed: bool = False
    """Whether an earlier step of the turn has streamed content."""
    cut: LeftLink | None = None
    """The first that broke off in the middle of this step's answer, which is being carried on (CHAIN-14)."""
    left: tuple[LeftLink, ...] = ()

    @property
    def candidate(self) -> ChainLink:
        """The link to call, with what it can do."""
        return self.links[self.position]

    @property
    def link(self) -> Link:
        """The link to call."""
        return self.candidate.link

    @property
    def restarts(self) -> bool:
        """Whether the next link begins the turn again (CHAIN-6). An answer that was begun is carried on."""
        return self.mode is FallbackMode.RESTART and self.cut is None

    @property
    def fallbacks_taken(self) -> tuple[Link, ...]:
        """The links that failed or were skipped, never the one that answers (CHAIN-11).

        A chain of one link has nothing to list.
        """
        return () if len(self.links) == 1 else tuple(left.link for left in self.left)
