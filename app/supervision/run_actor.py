"""The owner of one live run. It asks the domain what comes next, does it, and reports back."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import assert_never

from app.store.patience import patiently
from app.supervision.actor import Interrupted
from app.supervision.child_runs import RunsChildren
from app.supervision.deliverable import lacking_of, nudge_for
from app.supervision.ending import end_run
from app.supervision.live_actor import LiveActor
from app.supervision.live_run import LiveRun
from app.supervision.model_step import ModelStep
from app.supervision.side_steps import SideSteps
from app.supervision.tool_step import ToolStep
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition
from domain.commands import AwaitApproval, CancelRun, CompleteRun, FailRun, Nudge
from domain.compaction import Summarise, UseSummary
from domain.criterion import AskJudge, TellUnmet
from domain.failure import ErrorClass, RunError
from domain.run import RunStatus
from domain.turn import (
    Action,
    AskApproval,
    CallModel,
    CallTools,
    Complete,
    GiveUp,
    Rest,
    TellMissing,
    TurnLimits,
    next_action,
)

Ending = CompleteRun | FailRun | CancelRun | AwaitApproval


class RunActor(LiveActor):
    """Told to cancel, it cancels its work, records what was in flight, and ends the run once (CANCEL-3)."""

    def __init__(
        self,
        live: LiveRun,
        bench: Workbench,
        definition: AgentDefinition,
        wait: Callable[[], Awaitable[None]] | None = None,
        *,
        children: RunsChildren,
    ) -> None:
        """`wait` returns when the run has begun, where it could not begin at once."""
        super().__init__(live)
        self._wait = wait
        self._bench = bench
        own = definition.max_length_continuations
        self._limits = TurnLimits(
            max_steps=bench.turn.max_steps,
            max_length_continuations=bench.turn.max_length_continuations if own is None else own,
            max_nudges=bench.turn.max_nudges,
        )
        self._lacking = lacking_of(definition)
        self._spending = bench.trees.spending_of(live)
        self._model_step = ModelStep(live, bench, definition)
        self._side_steps = SideSteps(live, bench, definition, self._spending)
        self._tool_step = ToolStep(live, bench, definition, children, self._spending, self._stop.asked)

    async def run(self) -> None:
        ending = await self._turn()
        await end_run(self._live, self._bench, ending)

    async def _turn(self) -> Ending:
        timeout_s = self._bench.turn.timeout
        self._stop.deadline = asyncio.timeout(timeout_s)
        try:
            with self.interruptible():
                async with self._stop.deadline:
                    if self._wait is not None:
                        await self._wait()
                    return await self._steps()
        except Interrupted:
            return self._stop.heed() or CompleteRun()
        except TimeoutError:
            if not self._stop.deadline.expired():
                raise
            if self._live.run.status is RunStatus.QUEUED:
                return FailRun(error=_turn_did_not_come(timeout_s))
            waiting_at = self._model_step.waiting_at or self._side_steps.waiting_at
            return FailRun(error=_deadline_passed(timeout_s, waiting_at))

    async def _steps(self) -> Ending:  # noqa: C901 - one flat dispatch
        if error := await patiently(self._spending.begin, self._bench.store.outage_patience):
            return FailRun(error=error)
        while True:
            match self._next():
                case CallModel(step=step):
                    perform = partial(self._model_step.perform, step)
                    error = await self._spending.during(self._model_step.estimate(), perform)
                    if error is not None:
                        return FailRun(error=error)
                case CallTools(calls=calls):
                    together = self._bench.tool_loop.allow_concurrent_tool_calls
                    await self._tool_step.perform(calls if together else calls[:1])
                case AskApproval(calls=calls):
                    return self._tool_step.gate.ending_for(calls)
                case UseSummary() | Summarise() | AskJudge() | TellUnmet() as action:
                    error = await self._side_steps.perform(action)
                    if error is not None:
                        return FailRun(error=error)
                case TellMissing(missing=missing):
                    self._live.execute(Nudge(missing=missing, message=nudge_for(missing)))
                case GiveUp(error=error):
                    return FailRun(error=error)
                case Complete() | Rest():
                    return CompleteRun()
                case action:
                    assert_never(action)

    def _next(self) -> Action:
        return next_action(
            self._live.run,
            self._limits,
            self._lacking,
            overfull=self._side_steps.overfull,
            gated=self._tool_step.waits_for_a_person,
        )


def _turn_did_not_come(timeout_s: float) -> RunError:
    return RunError(
        message=f"the run's turn in its session did not come within {timeout_s:g} s (turn.timeout)",
        type="deadline_exceeded",
        error_class=ErrorClass.TIMEOUT,
    )


def _deadline_passed(timeout_s: float, waiting_at: str | None) -> RunError:
    waited = (
        f"; it waited for a place at provider {waiting_at}, and"
        f" model_concurrency.max_concurrent_calls_per_provider is how many there are"
    )
    message = f"the run did not end within {timeout_s:g} s; turn.timeout raises the limit"
    return RunError(
        message=message + waited if waiting_at else message,
        type="deadline_exceeded",
        error_class=ErrorClass.TIMEOUT,
    )
