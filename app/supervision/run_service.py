"""Starts runs on this host and takes requests about them."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from app.db.errors import StoreUnavailable
from app.identity import new_run_id
from app.registry import Catalog
from app.store.event_log import Change, VersionConflict
from app.store.stream_writer import StreamWriter
from app.supervision.cancels import Cancels
from app.supervision.cancels import OwnerGone as OwnerGone
from app.supervision.cancels import RunNotHere as RunNotHere
from app.supervision.drain import Drain
from app.supervision.live_run import LiveRun
from app.supervision.orphans import host_of
from app.supervision.roster import Roster
from app.supervision.run_actor import Cancel, PenLost, RunActor
from app.supervision.runs import Runs
from app.supervision.sessions import load_session
from app.supervision.supervisor import NEVER_BEGUN, Supervisor
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition
from domain.commands import CancelQueuedRun, CreateRun, RunCommand, StartRun
from domain.decide import RunAlreadyBegun, RunAlreadyEnded, decide
from domain.events import Event, Recorded, RunEvent
from domain.ids import DEFAULT_TENANT, RunId, Version, run_stream
from domain.messages import Message
from domain.parameters import instantiate
from domain.queueing import QueueSpec
from domain.run import Run, RunStatus, evolve, fold
from domain.session import Session
from domain.submission import Origin, Overrides, overridden

# A new submission waits this long for a store that has just gone before it is refused (EVENT-8).
ADMISSION_PATIENCE_S = 2.0


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
        catalog: Catalog,
        bench: Workbench,
        runs: Runs,
        roster: Roster,
        supervisor: Supervisor,
        cancels: Cancels,
        drain: Drain,
    ) -> None:
        self._catalog = catalog
        self._bench = bench
        self._runs = runs
        self._roster = roster
        self._supervisor = supervisor
        self._cancels = cancels
        self._drain = drain
        self._closing: set[asyncio.Task[None]] = set()

    async def start(self, request: StartRequest) -> RunId:
        """Open the run and give it its actor. When this returns, the run is kept and running, or queued.

        Raise Draining, AgentNotFound, BadParameter, StoreUnavailable, or VersionConflict where a stream
        alongside had moved; then nothing was begun.
        """
        self._drain.admit()
        agent = instantiate(self._catalog.agent(request.agent), request.parameters)
        definition = overridden(agent, request.overrides)
        run, events = Run(id=request.run_id or new_run_id()), list[Event]()
        commands: list[RunCommand] = [_creation(request)]
        session = Session()
        if request.queue is None:
            session = await load_session(self._bench.log, request.tenant, request.session_id)
            commands.append(self._beginning(definition, session))
        for command in commands:
            for event in decide(run, command):
                run = evolve(run, event)
                events.append(event)
        await self._open(run, events, request)
        if request.queue is None:
            self._roster.start(self._actor(run, session, definition))
        return run.id

    async def take(self, run_id: RunId) -> asyncio.Task[None]:
        """Begin a queued run on this host and give it its actor. The task that is returned ends with it.

        Raise RunAlreadyBegun, RunAlreadyEnded, AgentNotFound, BadParameter, or StoreUnavailable, after which
        it may have been recorded as begun.
        """
        while True:
            run = await self._runs.load(run_id)
            created = run.created
            if created is None or run.status is not RunStatus.QUEUED:
                raise _not_to_be_begun(run)
            agent = instantiate(self._catalog.agent(created.agent), created.parameters)
            definition = overridden(agent, created.overrides)
            session = await load_session(self._bench.log, created.tenant, created.session_id)
            events = decide(run, self._beginning(definition, session))
            change = Change(
                stream_id=run_stream(run_id),
                expected=run.version,
                tenant=created.tenant,
                events=tuple(events),
            )
            try:
                await self._bench.log.append(change, patience_s=self._bench.store.outage_patience)
            except VersionConflict:
                continue  # begun elsewhere, or cancelled at this moment
            for event in events:
                run = evolve(run, event)
            return self._roster.start(self._actor(run, session, definition))

    async def execute(self, run_id: RunId, command: RunCommand) -> None:
        """Carry out a command on a run that nobody owns. Raise what the decision raises."""
        await self._runs.execute(run_id, command)

    def cut_off(self, run_id: RunId) -> None:
        """Stop working on the run at once and leave its stream as it is: it may be somebody else's by now."""
        self._roster.fence(run_id)

    async def cancel(self, tenant: str, run_id: RunId, reason: str = "") -> None:
        """Reach the run's owner (CANCEL-1, 2).

        Raise RunNotFound, RunAlreadyEnded, RunNotHere, OwnerGone or StoreUnavailable.
        """
        actor = self._roster.find(run_id)
        if actor is not None and actor.tenant == tenant:
            self.cancel_here(run_id, reason)
            self._bench.metrics.cancels.labels("here").inc()
            return
        history = await self._runs.history(run_id, tenant)
        run = fold(run_id, (recorded.event for recorded in history))
        if run.status.ended:
            self._bench.metrics.cancels.labels("already_ended").inc()
            raise RunAlreadyEnded(run_id, run.status)
        if run.status is RunStatus.QUEUED and run.created and run.created.queue:
            await self._cancel_queued(tenant, run_id, reason)
            return
        await self._cancels.send(run_id, host_of(history), reason)

    async def _cancel_queued(self, tenant: str, run_id: RunId, reason: str) -> None:
        """The run's stream decides who was first: this, or a worker that begins the run."""
        try:
            await self._runs.execute(run_id, CancelQueuedRun(reason=reason))
        except RunAlreadyBegun:
            await self.cancel(tenant, run_id, reason)
        else:
            self._bench.metrics.cancels.labels("queued").inc()

    def cancel_here(self, run_id: RunId, reason: str) -> bool:
        """Tell the run's actor to stop, if it is on this host. Return whether it is."""
        actor = self._roster.find(run_id)
        if actor is not None:
            actor.tell(Cancel(reason=reason))
        return actor is not None

    async def load(self, tenant: str, run_id: RunId) -> list[Recorded[RunEvent]]:
        """Every event of the tenant's run so far. Raise RunNotFound."""
        return await self._runs.history(run_id, tenant)

    async def _open(self, run: Run, events: list[Event], request: StartRequest) -> None:
        change = Change(
            stream_id=run_stream(run.id), expected=Version(0), tenant=request.tenant, events=tuple(events)
        )
        try:
            await self._bench.log.append(change, *request.alongside, patience_s=ADMISSION_PATIENCE_S)
        except StoreUnavailable:
            self._close_in_background(run.id)
            raise

    def _beginning(self, definition: AgentDefinition, session: Session) -> StartRun:
        return StartRun(host=self._bench.host, definition=definition, session_version=session.version)

    def _actor(self, run: Run, session: Session, definition: AgentDefinition) -> RunActor:
        pen = StreamWriter(
            self._bench.log,
            run_stream(run.id),
            version=run.version,
            tenant=run.created.tenant if run.created else DEFAULT_TENANT,
            patience_s=self._bench.store.outage_patience,
        )
        deadline = datetime.now(UTC) + timedelta(seconds=self._bench.turn.timeout)
        actor = RunActor(LiveRun(run, session, pen, deadline), self._bench, definition)
        pen.on_lost = lambda cause: actor.tell(PenLost(cause))
        return actor

    def _close_in_background(self, run_id: RunId) -> None:
        """The refused run may have been kept all the same. Nobody works on it, so it must not stay open."""
        task = asyncio.create_task(self._supervisor.close(run_id, NEVER_BEGUN))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


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
