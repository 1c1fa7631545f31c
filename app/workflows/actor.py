"""The owner of one live run of a workflow. It asks the plan what comes next, does it, and reports back."""

import asyncio
from contextlib import aclosing
from typing import assert_never

from app.store.errors import Fenced
from app.store.patience import patiently
from app.supervision.actor import Interrupted
from app.supervision.ending import end_run
from app.supervision.live_actor import LiveActor
from app.supervision.live_run import LiveRun
from app.workflows.bench import WorkflowBench
from app.workflows.nodes import Nodes
from app.workflows.standing import COMPANY_S, standing_of
from domain.commands import AwaitInput, CancelRun, CompleteRun, FailRun, StartRun
from domain.commands.workflow import BeginSuperStep, FinishSuperStep
from domain.failure import ErrorClass, RunError
from domain.ids import run_stream
from domain.run import RunStatus
from domain.workflow.plan import (
    BeginStep,
    CompleteWorkflow,
    FinishStep,
    GiveUpWorkflow,
    RunNodes,
    WaitForPeople,
    WorkflowLimits,
    next_action,
)

Ending = CompleteRun | FailRun | CancelRun | AwaitInput


class WorkflowActor(LiveActor):
    """It waits for a slot, and its time begins with the slot. Told to cancel, it cancels its nodes, records
    what came of them, and ends the run once (CANCEL-3)."""

    def __init__(self, live: LiveRun, bench: WorkflowBench) -> None:
        super().__init__(live)
        self._bench = bench
        settings = bench.settings
        self._limits = WorkflowLimits(
            max_super_steps=settings.max_super_steps, checkpointing=settings.enable_checkpointing
        )
        self._has_slot = False
        self._spending = bench.host.trees.spending_of(live)
        self._nodes = Nodes(live, bench, self._spending, self._stop.asked)

    async def run(self) -> None:
        try:
            ending = await self._work()
            await end_run(self._live, self._bench.host, ending)
        finally:
            if self._has_slot:
                self._bench.slots.give_back()

    async def _work(self) -> Ending:
        self._stop.deadline = asyncio.timeout(None)
        try:
            with self.interruptible():
                async with self._stop.deadline:
                    error = await self._begin()
                    return await self._steps() if error is None else FailRun(error=error)
        except Interrupted:
            return self._stop.heed() or CompleteRun()
        except TimeoutError:
            if not self._stop.deadline.expired():
                raise
            return FailRun(error=_deadline_passed(self._bench.settings.run_timeout))

    async def _begin(self) -> RunError | None:
        """Return what ends the run before its first node, if anything does (BUDGET-7)."""
        if self._live.run.status is RunStatus.QUEUED:
            await self._wait_for_slot()
            self._live.execute(StartRun(host=self._bench.host.host), within_s=COMPANY_S)
        timeout_s = self._bench.settings.run_timeout
        self._live.may_take(timeout_s)
        if self._stop.deadline is not None:
            self._stop.deadline.reschedule(asyncio.get_running_loop().time() + timeout_s)
        return await patiently(self._spending.begin, self._bench.host.store.outage_patience)

    async def _wait_for_slot(self) -> None:
        """Raise Fenced if the run was ended elsewhere meanwhile."""
        slot = asyncio.create_task(self._bench.slots.take())
        moved = asyncio.create_task(self._moved())
        try:
            await asyncio.wait({slot, moved}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            moved.cancel()
            slot.cancel()
            await asyncio.gather(slot, moved, return_exceptions=True)
            self._has_slot = not slot.cancelled()
        if not self._has_slot:
            raise Fenced(run_stream(self._live.id))

    async def _moved(self) -> None:
        stream, known = run_stream(self._live.id), self._live.run.version
        async with aclosing(self._bench.host.log.follow(stream, known)) as batches:
            await anext(batches)

    async def _steps(self) -> Ending:
        while True:
            match next_action(standing_of(self._live).workflow, self._live.run.given, self._limits):
                case BeginStep(nodes=nodes):
                    begin = BeginSuperStep(nodes=tuple(node.name for node in nodes))
                    self._live.execute(begin, within_s=COMPANY_S)
                case RunNodes(nodes=nodes):
                    await self._nodes.perform(nodes)
                case FinishStep():
                    # It is kept before anything builds on it: the next node's beginning is a barrier (WF-2).
                    finish = FinishSuperStep(checkpoint=self._limits.checkpointing)
                    self._live.execute(finish, within_s=COMPANY_S)
                    self._bench.host.metrics.super_steps.inc()
                case WaitForPeople(requests=requests):
                    return AwaitInput(requests=requests)
                case GiveUpWorkflow(error=error):
                    return FailRun(error=error)
                case CompleteWorkflow():
                    return CompleteRun()
                case action:
                    assert_never(action)


def _deadline_passed(timeout_s: float) -> RunError:
    return RunError(
        message=f"the workflow did not end within {timeout_s:g} s; workflows.run_timeout raises the limit",
        type="deadline_exceeded",
        error_class=ErrorClass.TIMEOUT,
    )
