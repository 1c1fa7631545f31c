"""Goes on from a workflow's run whose worker is gone, in its job's place (WF-4)."""

import logging

from app.identity import new_run_id
from app.metrics import Metrics
from app.settings import WorkflowSettings
from app.store.event_log import Change, EventLog, VersionConflict
from app.supervision.cancels import Cancels
from app.supervision.runs import Runs
from app.workflows.chains import ChainTooLong, chain_of, past_run
from app.workflows.opening import WorkflowOpener, WorkflowOpening
from domain.continuation import PastRun
from domain.events import RunCreated, RunEvent
from domain.evolve import fold
from domain.ids import RunId, Version, run_stream
from domain.workflow.recovery import Recovery, is_recoverable, queue_after, recover
from domain.workflow.resume import Next

log = logging.getLogger(__name__)


class WorkflowRecovery:
    """Asked by the worker that has the job next, and told of runs that reconciliation has closed."""

    def __init__(
        self,
        event_log: EventLog,
        runs: Runs,
        opener: WorkflowOpener,
        cancels: Cancels,
        settings: WorkflowSettings,
        metrics: Metrics,
    ) -> None:
        self._log = event_log
        self._runs = runs
        self._opener = opener
        self._cancels = cancels
        self._settings = settings
        self._metrics = metrics

    async def consider(self, run_id: RunId) -> None:
        """Right after the run was closed as orphaned. Raise StoreUnavailable: then tell this host again."""
        await self.recover(run_id, is_last=False)

    async def recover(self, run_id: RunId, *, is_last: bool) -> bool:
        """Close the run, if it is open, and have another one go on from its latest checkpoint.

        Return False where the run's job is not one that goes on. Raise StoreUnavailable.
        """
        if not self._settings.resume_interrupted_runs:
            return False
        while True:
            past = await past_run(self._runs, run_id)
            if not is_recoverable(fold(run_id, past.events)):
                return False
            if await self._was_seen_to(past, is_last):
                return True

    async def _was_seen_to(self, past: PastRun, is_last: bool) -> bool:
        """False: the run has moved since it was read."""
        try:
            chain = await chain_of(self._runs, past.run_id)
        except ChainTooLong:
            chain, is_last = [past], True
        asked = await self._cancels.left_for([past.run_id])
        verdict = recover(
            chain,
            _next(past),
            max_attempts=self._settings.max_resume_attempts,
            is_last=is_last,
            asked=asked.get(past.run_id),
        )
        if verdict is None:
            return True
        try:
            await self._act_on(chain[-1], verdict)
        except VersionConflict:
            return False
        return True

    async def _act_on(self, past: PastRun, verdict: Recovery) -> None:
        going_on = verdict.going_on
        if going_on is None:
            await self._log.append(_note(past, verdict.closing))
            log.error("workflow.given_up", extra={"run_id": str(past.run_id)})
            return
        opened = await self._opener.open(
            WorkflowOpening(
                run_id=going_on.run_id,
                create=going_on.create,
                open=going_on.open,
                alongside=(_note(past, (*verdict.closing, *going_on.afterwards)),),
            )
        )
        self._metrics.runs_continued.inc()
        extra = {"run_id": str(past.run_id), "by": str(opened.stream_id)}
        log.warning("workflow.continued", extra=extra)


def _next(past: PastRun) -> Next:
    created = past.events[0]
    queue = created.queue if isinstance(created, RunCreated) else None
    return Next(run_id=new_run_id(), queue=None if queue is None else queue_after(queue))


def _note(past: PastRun, events: tuple[RunEvent, ...]) -> Change:
    """What the old run's stream says, right behind what was judged."""
    created = past.events[0]
    return Change(
        stream_id=run_stream(past.run_id),
        expected=Version(len(past.events)),
        tenant=created.tenant if isinstance(created, RunCreated) else "",
        events=events,
    )
