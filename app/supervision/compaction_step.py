"""Keeping the model's context below its threshold: the older part is summarised, on record (CHAIN-13)."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import msgspec

from app.supervision.live_run import LiveRun
from app.supervision.side_calls import SideCalls
from app.supervision.side_request import SideQuestion
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition
from domain.budget import Charge
from domain.commands.side import CompactContext, GiveUpCompaction
from domain.compaction import INSTRUCTIONS, SHARE_OF_TIME, Summarise, UseSummary, due
from domain.events.side import SidePurpose, Summary
from domain.failure import CallFailure, ErrorClass, FailureKind, RunError
from domain.run import Run
from domain.tool import ToolSpec
from domain.written import tokens_in

log = logging.getLogger(__name__)


class OfNoUse(ValueError):
    """A summary that would not make the context shorter."""


class CompactionStep:
    """Has the context of one run compacted. Whatever comes of it, the run goes on."""

    def __init__(
        self, live: LiveRun, bench: Workbench, definition: AgentDefinition, tools: tuple[ToolSpec, ...]
    ) -> None:
        wanted = definition.compaction
        self._live = live
        self._fixed_tokens = 0 if wanted is None else fixed_tokens(definition, tools)
        self._calls = (
            None
            if wanted is None
            else SideCalls(live, bench, definition, SidePurpose.COMPACTION, wanted.summarizer)
        )

    @property
    def waiting_at(self) -> str | None:
        """The provider at which the summarizer's call waits for a place."""
        return None if self._calls is None else self._calls.waiting_at

    def overfull(self, run: Run) -> UseSummary | Summarise | None:
        """What is to be done before the next call of the agent's model."""
        session, known = self._live.session, self._live.ledger.summaries
        if session.summary is not None:
            known = (*known, session.summary)
        return due(run, session.messages, known, self._fixed_tokens)

    def estimate(self, plan: Summarise) -> Charge:
        """What the summary is expected to cost."""
        return self._summarizer.estimate(_question(plan))

    async def summarise(self, plan: Summarise) -> None:
        """Have it summarised, or put on record that this cannot be had."""
        found = await self._ask(_question(plan), partial(_shorter, plan))
        if isinstance(found, Summary):
            return await self._show(found, plan.context_tokens, reused=False)
        log.warning("compaction.failed", extra={"run_id": str(self._live.id), "error": found.message})
        return self._live.execute(GiveUpCompaction(error=found))

    async def use(self, plan: UseSummary) -> None:
        """Show the model a summary that is there."""
        await self._show(plan.summary, plan.context_tokens, reused=True)

    async def _show(self, summary: Summary, context_tokens: int, *, reused: bool) -> None:
        """It is committed before any model reads it, so that nobody has to be asked for it twice."""
        self._live.execute(CompactContext(summary=summary, context_tokens=context_tokens, reused=reused))
        await self._live.flush()

    async def _ask(self, asked: SideQuestion, read: Callable[[str], Summary]) -> Summary | RunError:
        limit = asyncio.timeout(self._live.remaining_s * SHARE_OF_TIME)
        try:
            async with limit:
                return await self._summarizer.ask(asked, read)
        except TimeoutError:
            if not limit.expired():
                raise
            self._summarizer.give_up(_TOO_LONG)
            return _NOT_IN_TIME

    @property
    def _summarizer(self) -> SideCalls:
        if self._calls is None:
            raise RuntimeError("an agent without a summarizer has nothing summarised")
        return self._calls


_TOO_LONG = CallFailure(
    kind=FailureKind.INTERNAL, message="there was no summary within half of the time that the run had left"
)


_NOT_IN_TIME = RunError(
    message=f"the summarizer was given up: {_TOO_LONG.message}",
    type="compaction_overdue",
    error_class=ErrorClass.TIMEOUT,
)


def _question(plan: Summarise) -> SideQuestion:
    return SideQuestion(instructions=INSTRUCTIONS, material=plan.material, can_do_without=True)


def _shorter(plan: Summarise, text: str) -> Summary:
    if tokens_in(text) >= tokens_in(plan.material):
        raise OfNoUse("the summary is no shorter than what it was to stand for")
    return plan.summary(text.strip())


def fixed_tokens(definition: AgentDefinition, tools: tuple[ToolSpec, ...]) -> int:
    """What every request has besides its messages and instructions."""
    schemas = msgspec.json.encode((tools, definition.response_schema)).decode()
    return tokens_in(schemas)
