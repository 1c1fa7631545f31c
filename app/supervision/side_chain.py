"""The way of side calls along their own chain: each switch on record and in the log (CHAIN-13)."""

import asyncio
import logging
import random

from app.supervision.live_run import LiveRun
from app.supervision.workbench import Workbench
from domain.agent import Binding, Link
from domain.chain.policy import ChainState, NextLink, Retry, Stop, Verdict, after, answered
from domain.commands.side import UseSideFallback
from domain.events.side import SidePurpose
from domain.failure import CallFailure, RunError

log = logging.getLogger(__name__)


class SideChain:
    """Asks the domain what follows from a failure, and does it."""

    def __init__(self, live: LiveRun, bench: Workbench, purpose: SidePurpose, binding: Binding) -> None:
        self._live = live
        self._metrics = bench.metrics
        self._retry_after_cap_s = bench.chain.retry_after_cap
        self._purpose = purpose
        self._links = tuple(bench.chain_link(link) for link in binding.links)
        self.state = ChainState(links=self._links)

    @property
    def link(self) -> Link:
        """The link to call."""
        return self.state.link

    def answered(self) -> None:
        """There is what was asked for. The link stays selected for the next time, and has its retry back."""
        self.state = answered(self.state, streamed=False)

    async def after(self, verdict: Verdict, failure: CallFailure) -> RunError | None:
        """Wait for the same link, go to the next one, or return why there is none.

        Who asks again after that begins with the first.
        """
        outcome = after(
            self.state,
            verdict,
            failure,
            remaining_s=self._live.remaining_s,
            random=random.random(),  # noqa: S311 - jitter, not a secret
            retry_after_cap_s=self._retry_after_cap_s,
        )
        before, self.state = self.link, outcome.state
        match outcome:
            case Retry(wait_s=wait_s):
                self._metrics.model_retries.labels(before.provider, before.model).inc()
                await asyncio.sleep(wait_s)
            case NextLink():
                self._moved(outcome, verdict)
            case Stop(error=error):
                self.state = ChainState(links=self._links)
                return error
        return None

    def _moved(self, switch: NextLink, verdict: Verdict) -> None:
        primary, left = self._links[0].link, switch.left
        self._live.execute(
            UseSideFallback(
                purpose=self._purpose,
                primary=primary,
                fallback=self.link,
                failure_class=verdict.failure_class,
                reason=left.reason,
                skipped=tuple(one.link for one in switch.skipped),
            )
        )
        self._metrics.fallbacks.labels(str(primary), str(self.link)).inc()
        told = {
            "run_id": str(self._live.id),
            "purpose": self._purpose.value,
            "left": str(left.link),
            "fallback": str(self.link),
            "failure_class": verdict.failure_class.value,
            "reason": left.reason,
        }
        log.warning("side_call.fallback_used", extra=told)
