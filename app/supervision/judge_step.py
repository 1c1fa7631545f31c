"""Holding an answer against the agent's criterion: a judge is asked, on record (CHAIN-13)."""

from app.supervision.live_run import LiveRun
from app.supervision.side_calls import SideCalls
from app.supervision.side_request import SideQuestion
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition
from domain.budget import Charge
from domain.commands.side import JudgeAnswer, SendBack
from domain.criterion import INSTRUCTIONS, SCHEMA, judgement_in, question, sent_back, unavailable
from domain.events.side import SidePurpose
from domain.failure import RunError


class JudgeStep:
    """Has the answers of one run judged."""

    def __init__(self, live: LiveRun, bench: Workbench, definition: AgentDefinition) -> None:
        loop = definition.loop
        self._live = live
        self._criterion = "" if loop is None else loop.criterion
        self._calls = (
            None if loop is None else SideCalls(live, bench, definition, SidePurpose.JUDGE, loop.judge)
        )

    @property
    def waiting_at(self) -> str | None:
        """The provider at which the judge's call waits for a place."""
        return None if self._calls is None else self._calls.waiting_at

    def estimate(self) -> Charge:
        """What the verdict is expected to cost."""
        return self._judge.estimate(self._question())

    async def ask(self) -> RunError | None:
        """Get the verdict on the answer. Return the error that ends the run, if nobody can say."""
        found = await self._judge.ask(self._question(), judgement_in)
        if isinstance(found, RunError):
            return unavailable(found)
        self._live.execute(JudgeAnswer(met=found.met, reason=found.reason))
        return None

    def send_back(self, reason: str) -> None:
        """Tell the agent's model why its answer will not do."""
        self._live.execute(SendBack(message=sent_back(reason)))

    def _question(self) -> SideQuestion:
        material = question(self._criterion, self._live.conversation)
        return SideQuestion(instructions=INSTRUCTIONS, material=material, response_schema=SCHEMA)

    @property
    def _judge(self) -> SideCalls:
        if self._calls is None:
            raise RuntimeError("an agent without a judge has nothing judged")
        return self._calls
