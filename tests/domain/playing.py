"""A run played from a plan by the rules that the actor follows, so that it can be cut at any of its facts."""

from collections.abc import Sequence

import msgspec

from domain import events as e
from domain.commands import (
    AnswerToolCall,
    BeginModelCall,
    CompleteRun,
    CreateRun,
    InvokeTool,
    RecordReply,
    RecordToolOutput,
    RunCommand,
    StartRun,
)
from domain.continuation import ORPHANED, PastRun
from domain.decide import decide
from domain.evolve import evolve
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.ledger import Ledger
from domain.ledger import evolve as evolve_ledger
from domain.messages import ToolCall
from domain.run import Run
from tests.domain.facts import DEFINITION, says

ORPHAN = e.RunFailed(error="its host is gone", error_type=ORPHANED, error_class=ErrorClass.INFRASTRUCTURE)


class PlannedCall(msgspec.Struct, frozen=True, kw_only=True):
    tool: str
    arguments: str = "{}"
    effect: e.ToolEffect = e.ToolEffect.DESTRUCTIVE
    safe_to_repeat: bool = False


Plan = Sequence[Sequence[PlannedCall]]
"""The calls that the model asks for, step by step. In a turn that begins anew it asks for the same again."""


class Played:
    """A run from its creation to its answer."""

    def __init__(
        self,
        run_id: RunId,
        create: CreateRun,
        plan: Plan,
        ledger: Ledger | None = None,
        *,
        together: bool = False,
    ) -> None:
        self.run = Run(id=run_id)
        self.ledger = ledger or Ledger()
        self.facts: list[e.RunEvent] = []
        self._tell(create)
        self._tell(StartRun(host="host-1", definition=DEFINITION))
        for step, calls in enumerate(plan, 1):
            self._step(step, calls, together)
        self._reply(len(plan) + 1, "It ships today.")
        self._tell(CompleteRun())

    def _step(self, step: int, planned: Sequence[PlannedCall], together: bool) -> None:
        calls = [
            ToolCall(id=f"{step}.{number}", name=one.tool, arguments=one.arguments)
            for number, one in enumerate(planned)
        ]
        self._reply(step, "Let me see.", *calls)
        begun = []
        for call, one in zip(calls, planned, strict=True):
            if self._begin(call, one):
                begun.append(call)
                if not together:
                    self._end(begun.pop())
        for call in reversed(begun):
            self._end(call)

    def _reply(self, step: int, text: str, *calls: ToolCall) -> None:
        self._tell(BeginModelCall(step=step, provider="primary", model="small"))
        self._tell(RecordReply(step=step, message=says(text, *calls), finish=e.FinishReason.STOP))

    def _begin(self, call: ToolCall, planned: PlannedCall) -> bool:
        if result := self.ledger.answer(call.name, call.arguments):
            self._tell(AnswerToolCall(call_id=call.id, result=result))
            return False
        key = self.ledger.call_key(self.run.chain_root, call.name, call.arguments)
        self._tell(
            InvokeTool(
                call_id=call.id,
                effect=planned.effect,
                call_key=key,
                safe_to_repeat=planned.safe_to_repeat,
            )
        )
        return True

    def _end(self, call: ToolCall) -> None:
        self._tell(RecordToolOutput(call_id=call.id, output=f"{call.name} is done"))

    def _tell(self, command: RunCommand) -> None:
        for fact in decide(self.run, command):
            self.run = evolve(self.run, fact)
            self.ledger = evolve_ledger(self.ledger, self.run.id, fact)
            self.facts.append(fact)

    def orphaned_after(self, facts: int) -> PastRun:
        """The run as it is if its host dies after so many facts, and another host closes it."""
        return PastRun(run_id=self.run.id, events=(*self.facts[:facts], ORPHAN))


def begun(*runs: Sequence[e.RunEvent]) -> list[str]:
    """The keys of the bodies that these runs began, each as often as it was begun."""
    return [fact.call_key for facts in runs for fact in facts if isinstance(fact, e.ToolInvoking)]
