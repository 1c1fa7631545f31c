"""The runs of the queue, as a worker sees them: those of agents, and those of workflows."""

import asyncio
from collections.abc import Sequence

from app.supervision.run_service import RunService
from app.workflows.recovery import WorkflowRecovery
from app.workflows.service import WorkflowService
from domain.commands import RunCommand
from domain.events import RunKind
from domain.failure import RunError
from domain.ids import RunId
from domain.refusals import RunAlreadyBegun, RunAlreadyEnded
from domain.run import Run, RunStatus


class QueuedRuns:
    """See `app.jobs.worker.Runs`."""

    def __init__(self, runs: RunService, workflows: WorkflowService, recovery: WorkflowRecovery) -> None:
        self._runs = runs
        self._workflows = workflows
        self._recovery = recovery

    async def look_up(self, run_ids: Sequence[RunId]) -> dict[RunId, Run]:
        return await self._runs.look_up(run_ids)

    async def take(self, run_id: RunId, known: Run | None = None) -> asyncio.Task[None]:
        run = known or (await self._runs.look_up([run_id])).get(run_id)
        if run is None or run.created is None or run.created.kind is not RunKind.WORKFLOW:
            return await self._runs.take(run_id, run)
        if run.status.ended:
            raise RunAlreadyEnded(run_id, run.status)
        if run.status is not RunStatus.QUEUED:
            raise RunAlreadyBegun(run_id, run.status)
        return self._workflows.take(run)

    async def execute(self, run_id: RunId, command: RunCommand) -> None:
        await self._runs.execute(run_id, command)

    async def close(self, run_id: RunId, error: RunError) -> None:
        await self._runs.close(run_id, error)

    async def recover(self, run_id: RunId, *, is_last: bool) -> bool:
        return await self._recovery.recover(run_id, is_last=is_last)

    def cut_off(self, run_id: RunId) -> None:
        self._runs.cut_off(run_id)
