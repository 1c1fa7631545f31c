"""How a run begins here: the append that opens it, its session's turn in the same one, and its actor."""

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from app.db.errors import StoreUnavailable
from app.store.event_log import Change, VersionConflict
from app.supervision.child_runs import RunsChildren
from app.supervision.live_run import LiveRun
from app.supervision.pens import pen_of
from app.supervision.roster import Roster
from app.supervision.run_actor import RunActor
from app.supervision.session_turns import Claim, SessionTurns
from app.supervision.sessions import SessionMoved
from app.supervision.supervisor import NEVER_BEGUN, Supervisor
from app.supervision.turn_wait import TurnWait
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition
from domain.commands import CreateRun, StartRun
from domain.decide import decide
from domain.events import Event, Recorded, RunCreated, RunEvent
from domain.evolve import evolve
from domain.ids import RunId, Version, run_stream, session_stream
from domain.ledger import Ledger
from domain.messages import Message
from domain.run import Run
from domain.session import Session

# A new submission waits this long for a store that has just gone before it is refused (EVENT-8).
ADMISSION_PATIENCE_S = 2.0


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is to begin."""

    run_id: RunId
    create: CreateRun
    definition: AgentDefinition
    alongside: tuple[Change, ...] = ()
    """What is to be true in other streams from the moment the run exists: all of it is kept, or nothing."""
    session_version: Version | None = None
    """How far its session must be, where the run is not to know of anything that came later."""
    ledger: Ledger = Ledger()
    """What the run finds done already."""
    patient: bool = False
    """Nobody waits for the answer: a store that has just gone has the time that live runs give it."""
    history: tuple[Message, ...] = ()
    """What the model is shown before the input of a run that has no session."""


class Opener:
    """Opens runs on this host, and gives them their actors."""

    def __init__(
        self,
        bench: Workbench,
        roster: Roster,
        supervisor: Supervisor,
        turns: SessionTurns,
        children: RunsChildren,
    ) -> None:
        self._bench = bench
        self._roster = roster
        self._supervisor = supervisor
        self._turns = turns
        self._children = children
        self._closing: set[asyncio.Task[None]] = set()

    async def open(self, opening: Opening) -> Recorded[Event]:
        """When this returns, the run is kept; it is running, or it waits for a worker or for its session.

        Return the run's first event as it was recorded.

        Raise SessionBusy, SessionMoved, StoreUnavailable, or VersionConflict where a stream alongside had
        moved; then nothing was begun.
        """
        create, nothing = opening.create, Run(id=opening.run_id)
        await self._bench.agents.prepare(create.tenant, opening.definition.agents)
        created = decide(nothing, create)
        while True:
            claim = await self._claim(opening)
            if opening.session_version not in (None, claim.session.version):
                raise SessionMoved(create.session_id or "")
            run = _after(nothing, created)
            begun = self._beginning(run, opening.definition, claim) if create.queue is None else []
            try:
                patience_s = self._bench.store.outage_patience if opening.patient else ADMISSION_PATIENCE_S
                kept = await self._append(run, 0, [*created, *begun], claim, create.tenant, patience_s)
            except StoreUnavailable:
                self.refuse(run.id)
                raise
            except VersionConflict as conflict:
                if not _is_its_sessions(conflict, create):
                    raise
                continue  # another run of the session was first
            if create.queue is None:
                self._start(_after(run, begun), claim, opening.definition, opening.ledger)
            return kept[0]

    async def take(
        self, run: Run, created: RunCreated, definition: AgentDefinition, ledger: Ledger
    ) -> asyncio.Task[None]:
        """Begin a run that was left to a worker. Raise StoreUnavailable or VersionConflict."""
        await self._bench.agents.prepare(created.tenant, definition.agents)
        claim = await self._turns.claim(
            created.tenant,
            created.session_id,
            run.id,
            in_place_of=created.continued_from_run_id,
            accepted=True,
        )
        begun = self._beginning(run, definition, claim)
        if begun or claim.changes:
            patience_s = self._bench.store.outage_patience
            await self._append(run, run.version, begun, claim, created.tenant, patience_s)
        return self._start(_after(run, begun), claim, definition, ledger)

    async def _claim(self, opening: Opening) -> Claim:
        create = opening.create
        if create.queue is not None or create.session_id is None:
            return Claim(session=Session(messages=opening.history), changes=opening.alongside)
        return await self._turns.claim(
            create.tenant,
            create.session_id,
            opening.run_id,
            in_place_of=create.continued_from_run_id,
            alongside=opening.alongside,
            accepted=create.continued_from_run_id is not None,
        )

    def _beginning(self, run: Run, definition: AgentDefinition, claim: Claim) -> list[RunEvent]:
        if not claim.begins:
            return []
        start = StartRun(host=self._bench.host, definition=definition, session_version=claim.session.version)
        return decide(run, start)

    async def _append(
        self,
        run: Run,
        expected: int,
        events: Sequence[RunEvent],
        claim: Claim,
        tenant: str,
        patience_s: float,
    ) -> list[Recorded[Event]]:
        own = Change(
            stream_id=run_stream(run.id), expected=Version(expected), tenant=tenant, events=tuple(events)
        )
        changes = (own, *claim.changes) if events else claim.changes
        return await self._bench.log.append(*changes, patience_s=patience_s)

    def _start(
        self, run: Run, claim: Claim, definition: AgentDefinition, ledger: Ledger
    ) -> asyncio.Task[None]:
        open_pen = partial(pen_of, self._bench, self._roster, run)
        live = LiveRun(run, claim.held, open_pen, self._bench.turn.timeout, ledger)
        wait = None
        if run.created is not None and not claim.begins:
            patience_s = self._bench.store.outage_patience
            turn = TurnWait(self._bench.log, self._turns, live, run.created, patience_s)
            wait = partial(turn.over, self._bench.host, definition)
        else:
            live.take_pen()
        return self._roster.start(RunActor(live, self._bench, definition, wait, children=self._children))

    def refuse(self, run_id: RunId) -> None:
        """The refused run may have been kept all the same. Nobody works on it, so it must not stay open."""
        task = asyncio.create_task(self._supervisor.close(run_id, NEVER_BEGUN))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _after(run: Run, events: Sequence[RunEvent]) -> Run:
    for event in events:
        run = evolve(run, event)
    return run


def _is_its_sessions(conflict: VersionConflict, create: CreateRun) -> bool:
    """Whether nothing but the run's own session had moved."""
    session_id = create.session_id
    return session_id is not None and conflict.stream_ids == (session_stream(create.tenant, session_id),)
