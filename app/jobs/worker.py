"""The worker: leases jobs for this host, has their runs begun, and stops a run whose lease is lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Protocol

from app.clock import elapsed_s
from app.db.errors import StoreUnavailable
from app.jobs.lease import LeasedJob
from app.jobs.leasing import Leasing
from app.jobs.slots import Slots
from app.metrics import Metrics
from app.outage import Outage
from app.settings import AsyncRunSettings
from domain.codec import UnknownTopic, UnreadableEvent
from domain.commands import ExhaustAttempts, RunCommand
from domain.errors import NotFound, Rejected
from domain.failure import ErrorClass, RunError
from domain.ids import RunId
from domain.refusals import RunAlreadyBegun, RunAlreadyEnded
from domain.run import Run

log = logging.getLogger(__name__)

LOST_BEFORE_BEGUN = 2
"""Leases may end so often before a run has begun, and are no attempts. A job that brings its workers down
before that must not do so for ever."""

INTERRUPTED = RunError(
    message="the worker that had the run is gone; its work cannot be taken up by another yet",
    type="interrupted",
    error_class=ErrorClass.INFRASTRUCTURE,
)
_WATCH_S = 0.5
_CLOSE_S = 2.0


class Bell(Protocol):
    def silence(self) -> None: ...
    def ring(self) -> None: ...
    async def wait(self, at_most_s: float) -> None: ...


class Runs(Protocol):
    """What a worker asks of those who run runs."""

    async def look_up(self, run_ids: Sequence[RunId]) -> dict[RunId, Run]:
        """The runs as they are now. Raise StoreUnavailable."""

    async def take(self, run_id: RunId, known: Run | None = None) -> asyncio.Task[None]:
        """Begin a queued run, `known` or looked up, on this host; the task ends with it.

        Raise RunAlreadyBegun, RunAlreadyEnded, Rejected or NotFound where it cannot be begun, or
        StoreUnavailable, after which it may have been.
        """

    async def execute(self, run_id: RunId, command: RunCommand) -> None:
        """Carry out a command on a run that nobody owns."""

    async def close(self, run_id: RunId, error: RunError) -> None:
        """End a run that nothing works on any more, as cancelled if that was asked for."""

    async def recover(self, run_id: RunId, *, is_last: bool) -> bool:
        """Close a run whose owner is gone and have another one go on from it, if it is of a kind that does.

        `is_last`: this is the job's last attempt, so none goes on. False: the run was left as it is (WF-4).
        """

    def cut_off(self, run_id: RunId) -> None:
        """Stop working on the run at once and leave its stream as it is."""


class Worker:
    """Takes no more than it has slots for. Who takes a job after another reads from its run what to do:

    - it never began: begin it;
    - it ended: forget the job;
    - it began: its owner's lease ran out, so the owner is gone or has stopped. The run cannot begin twice. If
      it is of a workflow, another run may go on from its latest checkpoint (WF-4). Otherwise it is closed as
      interrupted; or, when the job is out of attempts, the job is given up and its run left to reconciliation
      (JOB-1). If the owner is alive after all, its next append is fenced (EVENT-3).
    """

    def __init__(
        self,
        leasing: Leasing,
        runs: Runs,
        bell: Callable[[], AbstractContextManager[Bell]],
        *,
        may_lease: Callable[[], bool],
        settings: AsyncRunSettings,
        metrics: Metrics,
    ) -> None:
        """`may_lease` says whether this host still takes work (DRAIN-1); what it has goes on without that."""
        self._queue = leasing.queue
        self._leases = leasing.leases
        self._runs = runs
        self._open_bell = bell
        self._settings = settings
        self._metrics = metrics
        self._slots = Slots(settings)
        self._beginning: set[asyncio.Task[None]] = set()
        self._wake: Callable[[], None] = lambda: None
        self._may_lease = may_lease
        self._outage = Outage(log, "jobs")
        metrics.jobs_live.set_function(self.__len__)

    def __len__(self) -> int:
        """How many jobs this host works on."""
        return self._settings.max_concurrent - self._slots.free

    async def run(self) -> None:
        """Work until cancelled. What is being begun then is seen to; what has begun is not waited for."""
        watching = asyncio.create_task(self._watch(), name="job leases")
        try:
            with self._open_bell() as bell:
                self._wake = bell.ring
                while True:
                    bell.silence()
                    if not await self._lease_some():
                        await bell.wait(self._settings.poll_interval)
        finally:
            watching.cancel()
            await self._settle()

    def lost(self, run_ids: Sequence[RunId]) -> None:
        """These leases are somebody else's by now, or may be: have no further effect under them."""
        for run_id in run_ids:
            log.warning("job.lease_lost", extra={"run_id": str(run_id)})
            self._metrics.job_leases_lost.inc()
            self._runs.cut_off(run_id)

    async def _lease_some(self) -> bool:
        """Whether there may be more at once."""
        free = self._slots.by_lane()
        if not free or not self._may_lease():
            return False
        asked_at, at_most = elapsed_s(), self._slots.free
        try:
            jobs = await self._queue.lease(free, at_most, self._settings.lease_duration)
        except StoreUnavailable as error:
            self._outage.met(error)
            return False
        self._outage.over()
        for job in jobs:
            self._leases.take(job, asked_at)
            self._slots.take(job.lane)
            self._metrics.job_wait_seconds.labels(job.lane).observe(job.waited_s)
        if jobs:
            self._spawn(self._see_to_all(jobs))
        return len(jobs) == min(sum(free.values()), at_most)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work, name="beginning jobs")
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _see_to_all(self, jobs: Sequence[LeasedJob]) -> None:
        """What is leased together is looked up together."""
        known: Mapping[RunId, Run] = {}
        with suppress(StoreUnavailable, UnknownTopic, UnreadableEvent):  # each finds out for itself
            known = await self._runs.look_up([job.run_id for job in jobs])
        await asyncio.gather(*(self._see_to(job, known.get(job.run_id)) for job in jobs))

    async def _see_to(self, job: LeasedJob, known: Run | None) -> None:
        """Have the job's run begun. The one place where a crash in that is answered: its lease runs out."""
        running = None
        try:
            running = await self._begin(job, known)
        except StoreUnavailable as error:
            log.warning("job.store_lost", extra={"run_id": str(job.run_id), "error": str(error)})
        except Exception:
            log.exception("job.crashed", extra={"run_id": str(job.run_id)})
        if running is None:
            self._leases.drop(job.run_id)
            self._free(job)
        else:
            running.add_done_callback(partial(self._ended, job))

    def _ended(self, job: LeasedJob, running: asyncio.Task[None]) -> None:
        """The run has left this host. One that was cut off leaves its lease for `JobQueue.let_go`."""
        if not running.cancelled():
            self._leases.drop(job.run_id)
        self._free(job)

    def _free(self, job: LeasedJob) -> None:
        self._leases.forget(job.run_id)
        self._slots.give_back(job.lane)
        self._wake()

    async def _begin(self, job: LeasedJob, known: Run | None) -> asyncio.Task[None] | None:
        """The run's task; None where there is nothing left to do for the job."""
        ended = known is not None and known.status.ended
        if job.attempts > job.max_attempts + LOST_BEFORE_BEGUN and not ended:
            await self._give_up(job)
            return None
        try:
            running = await self._runs.take(job.run_id, known)
        except RunAlreadyEnded:
            await self._queue.finish(job.run_id, job.term)
        except RunAlreadyBegun:
            await self._follow_a_lost_owner(job)
        except (Rejected, NotFound) as error:
            await self._done(job, self._runs.close(job.run_id, _not_begun(error)))
        else:
            self._leases.begun(job.run_id)
            return running
        return None

    async def _follow_a_lost_owner(self, job: LeasedJob) -> None:
        if await self._runs.recover(job.run_id, is_last=job.attempts >= job.max_attempts):
            await self._queue.finish(job.run_id, job.term)
        elif job.attempts > job.max_attempts:
            await self._give_up(job)
        else:
            await self._done(job, self._runs.close(job.run_id, INTERRUPTED))

    async def _give_up(self, job: LeasedJob) -> None:
        log.error("job.attempts_exhausted", extra={"run_id": str(job.run_id), "attempts": job.attempts - 1})
        self._metrics.jobs_exhausted.labels(job.lane).inc()
        await self._done(job, self._runs.execute(job.run_id, ExhaustAttempts(attempts=job.attempts - 1)))

    async def _done(self, job: LeasedJob, closing: Awaitable[None]) -> None:
        with suppress(RunAlreadyEnded):
            await closing
        await self._queue.finish(job.run_id, job.term)

    async def _watch(self) -> None:
        """Leases that could not be renewed are given up here before they run out there."""
        while True:
            await asyncio.sleep(_WATCH_S)
            self.lost(self._leases.run_out(elapsed_s()))

    async def _settle(self) -> None:
        """Runs that are being begun get their actors, for whoever stops those to find."""
        beginning = tuple(self._beginning)
        if beginning:
            await asyncio.wait(beginning, timeout=_CLOSE_S)
        for task in beginning:
            task.cancel()
        await asyncio.gather(*beginning, return_exceptions=True)


def _not_begun(error: Rejected | NotFound) -> RunError:
    return RunError(message=str(error), type=error.code, error_class=ErrorClass.INVALID)
