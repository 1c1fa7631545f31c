"""How a workflow's run begins here: the append that opens it, and its actor, which waits for a slot."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

import msgspec

from app.db.errors import StoreUnavailable
from app.store.event_log import Change
from app.supervision.live_run import LiveRun
from app.supervision.opening import ADMISSION_PATIENCE_S
from app.supervision.pens import pen_of
from app.supervision.roster import Roster
from app.workflows.actor import WorkflowActor
from app.workflows.bench import WorkflowBench
from domain.commands import CreateRun
from domain.commands.workflow import OpenWorkflow
from domain.decide import decide
from domain.events import Event, Recorded, RunEvent
from domain.evolve import fold
from domain.ids import RunId, Version, run_stream
from domain.run import Run
from domain.session import Session


class WorkflowOpening(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow's run that is to begin."""

    run_id: RunId
    create: CreateRun
    open: OpenWorkflow
    alongside: tuple[Change, ...] = ()
    """What is to be true in other streams from the moment the run exists: all of it is kept, or nothing."""


class WorkflowOpener:
    """Opens runs of workflows on this host, and gives them their actors."""

    def __init__(self, bench: WorkflowBench, roster: Roster, refuse: Callable[[RunId], None]) -> None:
        """`refuse` is told of a run that may have been recorded although it was refused."""
        self._bench = bench
        self._roster = roster
        self._refuse = refuse

    async def open(self, opening: WorkflowOpening) -> Recorded[Event]:
        """When this returns, the run is kept; it has its actor, or it waits for a worker.

        Return the run's first event as it was recorded. Raise StoreUnavailable, or VersionConflict where a
        stream alongside had moved; then nothing was begun.
        """
        own = recorded_of(opening)
        try:
            log = self._bench.host.log
            kept = await log.append(own, *opening.alongside, patience_s=ADMISSION_PATIENCE_S)
        except StoreUnavailable:
            self._refuse(opening.run_id)
            raise
        if opening.create.queue is None:
            self.start(fold(opening.run_id, cast(tuple[RunEvent, ...], own.events)))
        return kept[0]

    def start(self, run: Run) -> asyncio.Task[None]:
        """Give the run its actor. It is on record as begun once that has a slot."""
        open_pen = partial(pen_of, self._bench.host, self._roster, run)
        live = LiveRun(run, Session(), open_pen, self._bench.settings.run_timeout)
        return self._roster.start(WorkflowActor(live, self._bench))


def recorded_of(opening: WorkflowOpening) -> Change:
    """What the log is to hold of the run itself."""
    run = Run(id=opening.run_id)
    created = decide(run, opening.create)
    opened = decide(fold(run.id, created), opening.open)
    return Change(
        stream_id=run_stream(run.id),
        expected=Version(0),
        tenant=opening.create.tenant,
        events=(*created, *opened),
    )
