"""Runs workflows on this host, and has runs go on from others: at a checkpoint, or with a person's answer."""

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec

from app.identity import new_run_id
from app.jobs.batches import Item, Prepare
from app.quotas.quotas import Asked, Quotas
from app.settings import WorkflowSettings
from app.store.event_log import Change, VersionConflict
from app.supervision.cancels import Cancels
from app.supervision.drain import Drain
from app.supervision.run_service import StartRequest
from app.supervision.runs import Runs
from app.workflows.chains import chain_of, past_run
from app.workflows.definitions import Found, WorkflowDefinitions
from app.workflows.opening import WorkflowOpener, WorkflowOpening, recorded_of
from domain.commands import CreateRun
from domain.commands.workflow import OpenWorkflow
from domain.continuation import PastRun
from domain.events import Event, Recorded, RunKind
from domain.evolve import fold
from domain.ids import RunId, Version, run_stream
from domain.parameters import BadParameter
from domain.queueing import QueueSpec
from domain.run import Run
from domain.waiting import InputRequest
from domain.workflow.resume import (
    GoingOn,
    Next,
    checkpoints_of,
    of_workflow,
    open_requests,
    responded,
    resumed,
)
from domain.workflow.state import Checkpoint

Judge = Callable[[Next], GoingOn]


class GoOn(msgspec.Struct, frozen=True, kw_only=True):
    """A run is to go on from this one."""

    tenant: str
    run_id: RunId
    streaming: bool = False
    queue: QueueSpec | None = None
    new_run_id: RunId | None = None
    """The new run's id, where the caller had to know it before."""
    alongside: tuple[Change, ...] = ()


class WorkflowService:
    """What the outside may do with workflows. Every method raises StoreUnavailable."""

    def __init__(
        self,
        definitions: WorkflowDefinitions,
        opener: WorkflowOpener,
        runs: Runs,
        cancels: Cancels,
        drain: Drain,
        quotas: Quotas,
        settings: WorkflowSettings,
    ) -> None:
        self.definitions = definitions
        self._opener = opener
        self._runs = runs
        self._cancels = cancels
        self._drain = drain
        self._quotas = quotas
        self._settings = settings

    async def start(self, request: StartRequest) -> RunId:
        """`submit`, for those who need the run's id and no more."""
        return RunId((await self.submit(request)).stream_id)

    async def submit(self, request: StartRequest) -> Recorded[Event]:
        """Open a run of the workflow that the request calls its agent. When this returns, it is kept.

        Raise Draining, WorkflowNotFound, UnusableWorkflow, QuotaExceeded, or VersionConflict where a stream
        alongside moved.
        """
        self._drain.admit()
        found = await self.definitions.runnable(request.tenant, request.agent)
        opening = self._opening(found, request)
        async with self._quotas.admitted(request.tenant, Asked(opening.run_id, request.agent)):
            return await self._opener.open(opening)

    async def prepare(self, tenant: str, workflow: str) -> Prepare:
        """What makes the items of a batch runs of this workflow. Raise WorkflowNotFound, UnusableWorkflow."""
        found = await self.definitions.runnable(tenant, workflow)

        def prepared(run_id: RunId, item: Item, queue: QueueSpec) -> Change:
            for name in item.parameters:
                raise BadParameter(name, f"workflow {workflow} has no parameters")
            request = StartRequest(
                tenant=tenant,
                agent=workflow,
                messages=item.messages,
                session_id=item.session_id,
                queue=queue,
                run_id=run_id,
            )
            return recorded_of(self._opening(found, request))

        return prepared

    def _opening(self, found: Found, request: StartRequest) -> WorkflowOpening:
        create = CreateRun(
            tenant=request.tenant,
            kind=RunKind.WORKFLOW,
            agent=request.agent,
            input=request.messages,
            session_id=request.session_id,
            streaming=request.streaming,
            origin=request.origin,
            queue=self.queued(request.queue),
        )
        return WorkflowOpening(
            run_id=request.run_id or new_run_id(),
            create=create,
            open=OpenWorkflow(definition=found.definition, definition_version=found.version),
            alongside=request.alongside,
        )

    def queued(self, queue: QueueSpec | None) -> QueueSpec | None:
        """With attempts for every continuation, and one that closes the chain (WF-4)."""
        if queue is None or not self._settings.resume_interrupted_runs:
            return queue
        return msgspec.structs.replace(queue, max_attempts=self._settings.max_resume_attempts + 2)

    async def resume(self, ask: GoOn, checkpoint: str | None = None) -> Recorded[Event]:
        """Open a run that goes on from the latest checkpoint, or from the one that is named (WF-2).

        Raise Draining, RunNotFound, QuotaExceeded, or what `resumed` raises.
        """
        self._drain.admit()
        while True:
            chain = await self._chain(ask, checkpoint)
            opened = await self._go_on(ask, chain[-1], partial(resumed, chain, checkpoint))
            if opened is not None:
                return opened

    async def _chain(self, ask: GoOn, checkpoint: str | None) -> list[PastRun]:
        """As much of the chain as is needed: a run knows the checkpoint that it began at itself."""
        if checkpoint is None:
            return [await past_run(self._runs, ask.run_id, ask.tenant)]
        return await chain_of(self._runs, ask.run_id, ask.tenant)

    async def respond(self, ask: GoOn, request_id: str | None, answer: str) -> Recorded[Event]:
        """Open the run that goes on with a person's answer. Of two answers at once, one does (WF-3).

        Raise Draining, RunNotFound, QuotaExceeded, or what `responded` raises.
        """
        self._drain.admit()
        while True:
            past = await past_run(self._runs, ask.run_id, ask.tenant)
            if await self._cancels.heed(ask.run_id):
                past = await past_run(self._runs, ask.run_id, ask.tenant)
            opened = await self._go_on(ask, past, partial(responded, past, request_id, answer))
            if opened is not None:
                return opened

    async def _go_on(self, ask: GoOn, past: PastRun, judge: Judge) -> Recorded[Event] | None:
        """The new run's first event; None where the run has moved since it was read."""
        after = Next(
            run_id=ask.new_run_id or new_run_id(), streaming=ask.streaming, queue=self.queued(ask.queue)
        )
        going_on, stream = judge(after), run_stream(past.run_id)
        note = Change(
            stream_id=stream,
            expected=Version(len(past.events)),
            tenant=going_on.create.tenant,
            events=going_on.afterwards,
        )
        opening = WorkflowOpening(
            run_id=after.run_id,
            create=going_on.create,
            open=going_on.open,
            alongside=(*ask.alongside, note),
        )
        asked = Asked(after.run_id, going_on.create.agent)
        try:
            async with self._quotas.admitted(going_on.create.tenant, asked):
                return await self._opener.open(opening)
        except VersionConflict as conflict:
            if stream not in conflict.stream_ids:
                raise
            return None

    async def checkpoints(self, tenant: str, run_id: RunId) -> tuple[Checkpoint, ...]:
        """All that the run can be resumed from. Raise RunNotFound, NotAWorkflow or ChainTooLong."""
        chain = await chain_of(self._runs, run_id, tenant)
        of_workflow(_folded(chain[-1]))
        return checkpoints_of(chain)

    async def requests(self, tenant: str, run_id: RunId) -> tuple[InputRequest, ...]:
        """What the run waits for. Raise RunNotFound or NotAWorkflow."""
        run = _folded(await past_run(self._runs, run_id, tenant))
        of_workflow(run)
        return open_requests(run)

    def take(self, run: Run) -> asyncio.Task[None]:
        """Give a queued run its actor on this host. The task ends with the run."""
        return self._opener.start(run)


def _folded(past: PastRun) -> Run:
    return fold(past.run_id, past.events)
