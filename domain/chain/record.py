"""How what the chain says goes on record (CHAIN-11)."""

from typing import assert_never

from domain.chain.policy import LeftLink, NextLink, Retry, Stop
from domain.commands import ExhaustChain, FailRun, RetryModelCall, RunCommand, SkipLink, UseFallback


def commands_for(outcome: Retry | NextLink | Stop) -> list[RunCommand]:
    """What to tell the run: after a failed call (which is recorded first), or before a turn's first call."""
    match outcome:
        case Retry(wait_s=wait_s):
            return [RetryModelCall(wait_ms=round(wait_s * 1000))]
        case NextLink(state=state, left=left, skipped=skipped):
            restarted = state.restarts and left.failure is not None
            switch = UseFallback(fallback=state.link, reason=left.reason, restarted=restarted)
            return [*_skips(skipped), switch]
        case Stop(error=error, exhausted=exhausted, skipped=skipped):
            end = [ExhaustChain(error=error)] if exhausted else []
            return [*_skips(skipped), *end, FailRun(error=error)]
        case _:
            assert_never(outcome)


def _skips(skipped: tuple[LeftLink, ...]) -> list[RunCommand]:
    return [SkipLink(link=one.link, reason=one.reason) for one in skipped]
