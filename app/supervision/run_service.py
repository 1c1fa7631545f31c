"""Starts runs on this host and takes requests about them."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from app.definitions.lookup import AgentLookup
from app.identity import new_run_id
from app.quotas.quotas import Asked, Quotas
from app.store.event_log import Change, VersionConflict
from app.supervision.approvals import Approvals
from app.supervision.cancels import Cancels
from app.supervision.cancels import OwnerGone as OwnerGone
from app.supervision.cancels import RunNotHere as RunNotHere
from app.supervision.closing import Closing
from app.supervision.defining import looked_up
from app.supervision.drain import Drain
from app.supervision.lineage import inheritance_of
from app.supervision.live_actor import Cancel
from app.supervision.opening import Opener, Opening
from app.supervision.orphans import host_of
from app.supervision.roster import Roster
from app.supervision.runs import Runs
from app.supervision.workbench import Workbench
from domain.approval import ApprovalClosed
from domain.commands import CancelQueuedRun, CreateRun, NoteWaitEnded, RunCommand
from domain.decide import RunAlreadyBegun, RunAlreadyEnded
from domain.events import Event, Recorded, RunEvent, WaitOver
from domain.evolve import fold
from domain.failure import RunError
from domain.ids import RunId, Version, run_stream
from domain.messages import Message
from domain.queueing import QueueSpec
from domain.refusals import WaitIsOver
from domain.run import Run, RunStatus
from domain.submission import Origin, Overrides


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A submission that has passed admission."""

    tenant: str
    agent: str
    messages: tuple[Message, ...]
    session_id: str | None = None
    parameters: dict[str, Any] = {}
    streaming: bool = False
    overrides: Overrides | None = None
    origin: Origin | None = None
    session_version: Version | None = None
    """How far its session must be, where the run is not to know of anything that came later."""
    run_id: RunId | None = None
    """The run's id, where the caller had to know it before; it must be a new one."""
    alongside: tuple[Change, ...] = ()
    """What is to be true in other streams from the moment the run exists: all of it is kept, or nothing."""
    queue: QueueSpec | None = None
    """Leave the run to a worker, of this host or another, instead of beginning it here and now."""


class RunService:
    """What the outside may do with runs."""

    def __init__(
        self,
        *,
        agents: AgentLookup,
        bench: Workbench,
        runs: Runs,
        roster: Roster,
        opener: Opener,
        approvals: Approvals,
        cancels: Cancels,
        closing: Closing,
        drain: Drain,
        quotas: Quotas,
    ) -> None:
        self._agents = agents
        self._bench = bench
        self._runs = runs
        self._roster = roster
        self._opener = opener
        self._approvals = approvals
        self._cancels = cancels
        self._closing = closing
        self._drain = drain
        self._quotas = quotas

    async def start(self, request: StartRequest) -> RunId:
        """`submit`, for those who need the run's id and no more."""
        return RunId((await self.submit(request)).stream_id)

    async def submit(self, request: StartRequest) -> Recorded[Event]:
        """Open the run and give it its actor. When this returns, the run is kept: running, or queued.

        Return its first event as it was recorded.

        Raise Draining, AgentNotFound, BadParameter, QuotaExceeded, SessionBusy, SessionMoved,
        StoreUnavailable, or VersionConflict where a stream alongside had moved; then nothing was begun.
        """
        self._drain.admit()
        create = _creation(request)
        opening = Opening(
            run_id=request.run_id or new_run_id(),
            create=create,
            definition=await looked_up(self._agents, create),
            alongside=request.alongside,
            session_version=request.session_version,
        )
        async with self._quotas.admitted(request.tenant, Asked(opening.run_id, request.agent)):
            return await self._opener.open(opening)

    async def look_up(self, run_ids: Sequence[RunId]) -> dict[RunId, Run]:
        """The runs as they are now, in one query. An unknown one is missing. Raise StoreUnavailable."""
        recorded = await self._bench.log.read_streams({run_stream(run_id): 0 for run_id in run_ids})
        events: dict[RunId, list[RunEvent]] = {}
        for one in recorded:
            events.setdefault(RunId(one.stream_id), []).append(cast(RunEvent, one.event))
        return {run_id: fold(run_id, of_one) for run_id, of_one in events.items()}

    async def take(self, run_id: RunId, known: Run | None = None) -> asyncio.Task[None]:
        """Begin a queued run on this host and give it its actor. The task that is returned ends with it.

        `known` is the run as somebody has just read it; it does not matter if it is that no longer.

        Raise RunAlreadyBegun, RunAlreadyEnded, AgentNotFound, BadParameter, or StoreUnavailable, after which
        it may have been recorded as begun.
        """
        while True:
            run, known = known or await self._runs.load(run_id), None
            created = run.created
            if created is None or run.status is not RunStatus.QUEUED:
                raise _not_to_be_begun(run)
            try:
                definition = await looked_up(self._agents, created)
                ledger = await inheritance_of(self._runs, created)
                return await self._opener.take(run, created, definition, ledger)
            except VersionConflict:
                continue  # begun elsewhere, or cancelled at this moment, or its session has moved

    async def execute(self, run_id: RunId, command: RunCommand) -> None:
        """Carry out a command on a run that nobody owns. Raise what the decision raises."""
        await self._runs.execute(run_id, command)

    async def close(self, run_id: RunId, error: RunError) -> None:
        """End a run that nothing works on any more. Raise RunAlreadyEnded, RunNotFound, StoreUnavailable."""
        await self._closing.close(run_id, error)

    def cut_off(self, run_id: RunId) -> None:
        """Stop working on the run at once and leave its stream as it is: it may be somebody else's by now."""
        self._roster.fence(run_id)

    async def cancel(self, tenant: str, run_id: RunId, reason: str = "", *, by: str | None = None) -> None:
        """Reach the run's owner (CANCEL-1, 2). When this returns, the run ends as cancelled, or ended by
        itself before that: not even the owner's death changes it.

        Raise RunNotFound, RunAlreadyEnded, RunNotHere, OwnerGone or StoreUnavailable.
        """
        actor = self._roster.find(run_id)
        if actor is not None and actor.tenant == tenant:
            self.cancel_here(run_id, reason)
            await self._cancels.keep(run_id, reason)
            await self._not_too_late(run_id, by, reason)
            return
        history = await self._runs.history(run_id, tenant)
        run = fold(run_id, (recorded.event for recorded in history))
        if run.status.awaits and await self._withdrawn(run, by, reason):
            return
        if run.status.ended:
            self._bench.metrics.cancels.labels("already_ended").inc()
            raise RunAlreadyEnded(run_id, run.status)
        if run.status is RunStatus.QUEUED:
            await self._cancel_queued(tenant, run_id, reason, by)
            return
        await self._cancels.send(run_id, host_of(history), reason)
        await self._not_too_late(run_id, by, reason)

    async def _not_too_late(self, run_id: RunId, by: str | None, reason: str) -> None:
        """Word was left for a run that may have ended before its owner could have heard of it.

        Its owner may not know that: somebody else has closed the run, and may have gone on from it. Where it
        came to wait meanwhile, others may have read the word first, and have withdrawn it for that.
        """
        run = await self._runs.load(run_id)
        if run.status.awaits:
            if await self._withdrawn(run, by, reason):
                return
            run = await self._runs.load(run_id)
        heeded = run.status is RunStatus.CANCELLED or run.wait_over is WaitOver.WITHDRAWN
        if run.status.ended and not heeded:
            await self._cancels.take_back(run_id)
            raise RunAlreadyEnded(run_id, run.status)

    async def withdraw(self, run_id: RunId, reason: str) -> None:
        """Let a run that waits for a person wait no more, if it still does. Raise StoreUnavailable."""
        run = await self._runs.load(run_id)
        if run.status.awaits:
            await self._withdrawn(run, None, reason)

    async def _withdrawn(self, run: Run, by: str | None, reason: str) -> bool:
        """Whether it was still waiting for a person. If not, it has ended like any other run."""
        try:
            if run.status is RunStatus.AWAITING_APPROVAL:
                await self._approvals.withdraw(run.id, by=by, reason=reason)
            else:
                await self._runs.execute(run.id, NoteWaitEnded(cause=WaitOver.WITHDRAWN, reason=reason))
        except (ApprovalClosed, WaitIsOver):
            return False
        self._bench.metrics.cancels.labels("withdrawn").inc()
        return True

    async def _cancel_queued(self, tenant: str, run_id: RunId, reason: str, by: str | None) -> None:
        """The run's stream decides who was first: this, or whoever begins the run.

        Nobody writes the stream of a run that waits, for a worker or for its session. Whoever has it in hand
        finds it ended there.
        """
        try:
            await self._runs.execute(run_id, CancelQueuedRun(reason=reason))
        except RunAlreadyBegun:
            await self.cancel(tenant, run_id, reason, by=by)
        else:
            self._bench.metrics.cancels.labels("queued").inc()

    def cancel_here(self, run_id: RunId, reason: str) -> bool:
        """Tell the run's actor to stop, if it is on this host. Return whether it is."""
        actor = self._roster.find(run_id)
        if actor is not None and not actor.is_cancelled:
            actor.tell(Cancel(reason=reason))
        return actor is not None

    async def load(self, tenant: str, run_id: RunId) -> list[Recorded[RunEvent]]:
        """Every event of the tenant's run so far. Raise RunNotFound."""
        return await self._runs.history(run_id, tenant)


def _creation(request: StartRequest) -> CreateRun:
    return CreateRun(
        tenant=request.tenant,
        agent=request.agent,
        input=request.messages,
        parameters=request.parameters,
        session_id=request.session_id,
        streaming=request.streaming,
        overrides=request.overrides,
        origin=request.origin,
        queue=request.queue,
    )


def _not_to_be_begun(run: Run) -> RunAlreadyEnded | RunAlreadyBegun:
    return RunAlreadyEnded(run.id, run.status) if run.status.ended else RunAlreadyBegun(run.id, run.status)
