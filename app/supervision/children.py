"""Opens child runs, on the host of their parent, and waits for them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from app.db.errors import StoreUnavailable
from app.definitions.lookup import AgentLookup
from app.identity import new_run_id
from app.store.change import Change
from app.store.patience import patiently
from app.supervision.child_runs import ChildAsk as ChildAsk
from app.supervision.child_runs import ChildFinished as ChildFinished
from app.supervision.child_runs import ChildOutcome as ChildOutcome
from app.supervision.child_runs import ChildRefused as ChildRefused
from app.supervision.defining import looked_up
from app.supervision.lineage import left_by
from app.supervision.live_actor import Cancel
from app.supervision.live_run import LiveRun
from app.supervision.pens import pen_of
from app.supervision.roster import Roster
from app.supervision.run_actor import RunActor
from app.supervision.runs import Runs
from app.supervision.supervisor import Supervisor
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition
from domain.commands import CreateRun, NoteChild, NoteContinued, StartRun
from domain.decide import decide
from domain.errors import Conflict
from domain.events import RunEvent
from domain.evolve import evolve
from domain.failure import ErrorClass, RunError
from domain.ids import RunId, Version, run_stream
from domain.ledger import Ledger
from domain.run import Run, RunStatus
from domain.session import Session

T = TypeVar("T")


class Children:
    """A child is a run like every other: in the roster, with a heartbeat, and cancelled by its id.

    Its parent waits for it and does not end before it. Its session is its root's, in which it takes no turn.
    """

    def __init__(
        self, bench: Workbench, agents: AgentLookup, roster: Roster, supervisor: Supervisor, runs: Runs
    ) -> None:
        self._bench = bench
        self._agents = agents
        self._roster = roster
        self._supervisor = supervisor
        self._runs = runs

    async def run(self, parent: LiveRun, ask: ChildAsk) -> ChildOutcome:
        """See `RunsChildren`."""
        root, ledger = await self._left_by(ask.in_place_of)
        create = _creation(parent.run, ask, root)
        definition = await self._patiently(partial(looked_up, self._agents, create))
        await self._patiently(partial(self._bench.agents.prepare, create.tenant, definition.agents))
        child, actor = self._open(parent, ask, create, definition, ledger)
        task = self._roster.start(actor)
        try:
            if ask.in_place_of is not None:
                await self._note(ask.in_place_of, child.id)
            await asyncio.wait({task})
        except asyncio.CancelledError:
            await self._end_first(parent, child, actor, task)
            if child.run.status is RunStatus.COMPLETED:
                raise ChildFinished(_outcome_of(child.run)) from None
            raise
        if child.run.status.ended:
            return _outcome_of(child.run)
        await parent.flush()  # whatever cost the child its pen may have cost the parent its own
        return _outcome_of(await self._patiently(partial(self._runs.load, child.id)))

    async def _left_by(self, interrupted: RunId | None) -> tuple[RunId | None, Ledger]:
        """The root of its chain, and what a run finds done already that goes on from it."""
        if interrupted is None:
            return None, Ledger()
        return await self._patiently(partial(left_by, self._runs, interrupted))

    async def _patiently(self, read: Callable[[], Awaitable[T]]) -> T:
        return await patiently(read, self._bench.store.outage_patience)

    def _open(
        self,
        parent: LiveRun,
        ask: ChildAsk,
        create: CreateRun,
        definition: AgentDefinition,
        ledger: Ledger,
    ) -> tuple[LiveRun, RunActor]:
        """The child is recorded in one append with its parent's word of it, so that none is ever lost."""
        if refusal := self._bench.trees.tree_of(parent.run).start_child(create.depth):
            raise ChildRefused(refusal)
        nothing = Run(id=new_run_id())
        created = decide(nothing, create)
        begun = decide(_after(nothing, created), StartRun(host=self._bench.host, definition=definition))
        opening = Change(
            stream_id=run_stream(nothing.id),
            expected=Version(0),
            tenant=create.tenant,
            events=(*created, *begun),
        )
        parent.execute(NoteChild(run_id=nothing.id, agent=ask.agent, cause=ask.cause), alongside=(opening,))
        run = _after(nothing, [*created, *begun])
        time_s = min(self._bench.turn.timeout, parent.remaining_s)
        open_pen = partial(pen_of, self._bench, self._roster, run)
        child = LiveRun(run, Session(), open_pen, time_s, ledger)
        return child, RunActor(child, self._bench, definition, partial(_kept, parent), children=self)

    async def _note(self, interrupted: RunId, child: RunId) -> None:
        """The old run's stream names the new one (CONT-5). Nothing depends on it."""
        with suppress(Conflict, StoreUnavailable):
            await self._runs.execute(interrupted, NoteContinued(by=child))

    async def _end_first(
        self, parent: LiveRun, child: LiveRun, actor: RunActor, task: asyncio.Task[None]
    ) -> None:
        """Leaves end first (CANCEL-3). A host that stops cuts all of them off by itself."""
        if not self._supervisor.stopping:
            actor.tell(Cancel(reason=f"run {parent.id}, which waited for it, is being ended"))
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if child.run.status is RunStatus.CANCELLED:
            parent.ended_below += 1 + child.ended_below


async def _kept(parent: LiveRun) -> None:
    """Return when the child is on record. Its own pen may write nothing before that."""
    flushing = asyncio.ensure_future(parent.flush())
    try:
        await asyncio.shield(flushing)
    except asyncio.CancelledError:
        await asyncio.wait([flushing])
        if not flushing.cancelled():
            flushing.exception()  # the parent hears of it from its pen
        raise


def _creation(parent: Run, ask: ChildAsk, chain_root: RunId | None) -> CreateRun:
    created = parent.created
    if created is None:
        raise ValueError(f"run {parent.id} has not been created")
    return CreateRun(
        tenant=created.tenant,
        agent=ask.agent,
        input=ask.messages,
        parameters=ask.parameters,
        session_id=created.session_id,
        root_run_id=created.root_run_id or parent.id,
        parent_run_id=parent.id,
        depth=created.depth + 1,
        continued_from_run_id=ask.in_place_of,
        chain_root_run_id=chain_root,
    )


def _after(run: Run, events: Sequence[RunEvent]) -> Run:
    for event in events:
        run = evolve(run, event)
    return run


def _outcome_of(run: Run) -> ChildOutcome:
    if run.status is RunStatus.COMPLETED:
        return ChildOutcome(run_id=run.id, status=run.status, answer=run.answer)
    error = run.error or RunError(
        message=f"its run {run.id} is {run.status}",
        type=run.status.value.lower(),
        error_class=ErrorClass.INTERNAL,
    )
    return ChildOutcome(run_id=run.id, status=run.status, error=error)
