"""What a run does with models besides its agent's own turn: summaries and verdicts (CHAIN-13)."""

from functools import partial
from typing import assert_never

from app.supervision.compaction_step import CompactionStep
from app.supervision.judge_step import JudgeStep
from app.supervision.live_run import LiveRun
from app.supervision.model_request import tools_of
from app.supervision.spending import Spending
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition
from domain.compaction import Summarise, UseSummary
from domain.criterion import AskJudge, TellUnmet
from domain.failure import RunError
from domain.run import Run
from domain.turn import SideAction


class SideSteps:
    """Performs those actions of one run."""

    def __init__(
        self, live: LiveRun, bench: Workbench, definition: AgentDefinition, spending: Spending
    ) -> None:
        self._spending = spending
        self._compaction = CompactionStep(live, bench, definition, tools_of(live.tenant, bench, definition))
        self._judge = JudgeStep(live, bench, definition)

    @property
    def waiting_at(self) -> str | None:
        """The provider at which a call was waiting for a place when this was last heard of."""
        return self._compaction.waiting_at or self._judge.waiting_at

    def overfull(self, run: Run) -> UseSummary | Summarise | None:
        """What is to be done about the context before the agent's model is called."""
        return self._compaction.overfull(run)

    async def perform(self, action: SideAction) -> RunError | None:
        """Do it. Return the error that ends the run, if it cannot go on without.

        No call starts when the tree of runs has spent what it may (BUDGET-2).
        """
        match action:
            case UseSummary():
                await self._compaction.use(action)
            case Summarise():
                perform = partial(self._compaction.summarise, action)
                return await self._spending.during(self._compaction.estimate(action), perform)
            case AskJudge():
                return await self._spending.during(self._judge.estimate(), self._judge.ask)
            case TellUnmet(reason=reason):
                self._judge.send_back(reason)
            case _:
                assert_never(action)
        return None
