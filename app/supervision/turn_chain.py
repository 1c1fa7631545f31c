"""A turn's way along its chain, each move on record (CHAIN-11). It lasts as long as the turn (CHAIN-6)."""

import random

from app.metrics import Metrics
from app.supervision.live_run import LiveRun
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition, Link, StreamRecovery
from domain.chain.policy import ChainState, NextLink, Retry, Stop, Verdict, after, answered, begin
from domain.chain.record import commands_for
from domain.commands import FailRun
from domain.failure import CallFailure, RunError

Outcome = Retry | NextLink | Stop


class TurnChain:
    """Asks the domain what follows from a failure, and tells the run."""

    def __init__(self, live: LiveRun, bench: Workbench, definition: AgentDefinition) -> None:
        self._live = live
        self._metrics: Metrics = bench.metrics
        self._retry_after_cap_s = bench.chain.retry_after_cap
        self._recover = definition.stream_recovery is StreamRecovery.CONTINUE
        self._begun = False
        self.state = ChainState(
            links=tuple(bench.chain_link(link) for link in definition.links),
            needs_tools=bool(definition.tools or definition.agents),
            mode=definition.fallback_mode,
        )

    @property
    def link(self) -> Link:
        """The link to call."""
        return self.state.link

    def begin(self) -> RunError | None:
        """Select the link that the turn begins with (CHAIN-4). Return the error of a turn that has none."""
        if self._begun:
            return None
        self._begun = True
        outcome = begin(self.state)
        return None if isinstance(outcome, ChainState) else self._record(outcome)

    def begins_again(self, left: Link) -> bool:
        """Whether the turn starts anew on a link other than this one (CHAIN-6)."""
        return self.state.restarts and self.state.link != left

    def answered(self, *, streamed: bool) -> None:
        """The step has its reply."""
        self.state = answered(self.state, streamed=streamed)

    def after(self, verdict: Verdict, failure: CallFailure) -> tuple[Outcome, RunError | None]:
        """What follows from the failure that was just recorded; the error that ends the run, if it does."""
        outcome = after(
            self.state,
            verdict,
            failure,
            recover=self._recover,
            remaining_s=self._live.remaining_s,
            retry_after_cap_s=self._retry_after_cap_s,
            random=random.random(),  # noqa: S311 - jitter, not a secret
        )
        return outcome, self._record(outcome)

    def _record(self, outcome: Outcome) -> RunError | None:
        before, self.state = self.state, outcome.state
        for command in commands_for(outcome):
            if isinstance(command, FailRun):
                return command.error
            self._live.execute(command)
        match outcome:
            case Retry():
                self._metrics.model_retries.labels(before.link.provider, before.link.model).inc()
            case NextLink():
                primary = str(self.state.links[0].link)
                self._metrics.fallbacks.labels(primary, str(self.state.link)).inc()
            case Stop():
                pass
        return None
