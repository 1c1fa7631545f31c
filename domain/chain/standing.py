"""What a run's facts say about its chain: the link it is on, those it has used up, whether any is left."""

import msgspec

from domain import events as e
from domain.agent import Link
from domain.chain.policy import CHAIN_EXHAUSTED
from domain.failure import RunError


class ChainStanding(msgspec.Struct, frozen=True, kw_only=True):
    """Where the turn stands in its chain (CHAIN-11)."""

    fallback: Link | None = None
    """The link that was switched to; None while it is the primary."""
    failed_link: Link | None = None
    """The link whose call failed last, while it may still be tried again."""
    retried: bool = False
    """Whether that link's one retry in this step is spent."""
    between_links: bool = False
    """Whether links were skipped and the next one is not selected yet."""
    left: tuple[Link, ...] = ()
    exhausted: RunError | None = None

    @property
    def used_up(self) -> tuple[Link, ...]:
        """The links that failed or were skipped."""
        return (*self.left, self.failed_link) if self.failed_link else self.left


def evolve(standing: ChainStanding, event: e.RunEvent) -> ChainStanding:
    """Fold one fact in."""
    match event:
        case e.ModelCallFailed(provider=provider, model=model):
            return _with(standing, failed_link=Link(provider=provider, model=model))
        case e.ModelReplied():
            return _with(standing, failed_link=None, retried=False)
        case e.ModelCallRetried():
            return _with(standing, retried=True)
        case e.ChainLinkSkipped(provider=provider, model=model):
            left = (*standing.used_up, Link(provider=provider, model=model))
            return _with(standing, failed_link=None, between_links=True, left=left)
        case e.ModelFallbackUsed(fallback=fallback):
            return ChainStanding(fallback=fallback, left=standing.used_up)
        case e.ChainExhausted() as end:
            error = RunError(
                message=end.error,
                type=CHAIN_EXHAUSTED,
                error_class=end.error_class,
                retry_after_s=end.retry_after_s,
            )
            return ChainStanding(fallback=standing.fallback, left=end.links, exhausted=error)
        case _:
            return standing


_with = msgspec.structs.replace
