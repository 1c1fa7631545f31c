"""Continues runs whose host is gone, or has their streams say why not (CONT)."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import assert_never

from app.definitions.lookup import AgentLookup
from app.identity import new_run_id
from app.metrics import Metrics
from app.settings import RunContinuationSettings
from app.store.event_log import Change, EventLog, VersionConflict
from app.supervision.cancels import Cancels
from app.supervision.defining import looked_up
from app.supervision.drain import Drain
from app.supervision.lineage import chain_of, family_of
from app.supervision.opening import Opener, Opening
from app.supervision.runs import Runs
from domain.agent import AgentDefinition
from domain.commands import AfterwardsCommand, FailRun, NoteContinued
from domain.continuation import (
    ORPHANED,
    Blocked,
    Continue,
    NothingToDo,
    PastRun,
    Verdict,
    agent_unavailable,
    judge,
    was_orphaned,
)
from domain.decide import RunAlreadyEnded, decide
from domain.errors import NotFound, Rejected
from domain.evolve import fold
from domain.failure import ErrorClass, RunError
from domain.ids import RunId, Version, run_stream

_ROOT_ORPHANED = RunError(
    message="the root of its tree was closed as orphaned, and it was on the same host",
    type=ORPHANED,
    error_class=ErrorClass.INFRASTRUCTURE,
)

log = logging.getLogger(__name__)


class Continuer:
    """Told of an orphan, on any host and any number of times: one of them continues it, once."""

    def __init__(
        self,
        event_log: EventLog,
        runs: Runs,
        opener: Opener,
        agents: AgentLookup,
        drain: Drain,
        cancels: Cancels,
        settings: RunContinuationSettings,
        metrics: Metrics,
    ) -> None:
        self._log = event_log
        self._runs = runs
        self._opener = opener
        self._agents = agents
        self._drain = drain
        self._cancels = cancels
        self._settings = settings
        self._metrics = metrics

    async def consider(self, run_id: RunId) -> None:
        """Right after the run was closed as orphaned, or when something was found out about it since.

        Raise StoreUnavailable or Draining: then tell this host again later, or another one.
        """
        if not self._settings.enabled:
            return
        while True:
            chain = await self._closed_family(run_id)
            asked = await self._cancels.left_for([run_id])
            try:
                await self._act_on(chain[-1], judge(chain, self._settings.max_attempts, run_id in asked))
            except VersionConflict:
                continue  # another host was first, or there is news of the run
            return

    async def _closed_family(self, run_id: RunId) -> list[PastRun]:
        """The run, those that it continues, and the runs that their calls to agents were.

        Those of an orphan were on its host. One that is open yet is closed here, before anything is made of
        what it has done: from then on it does nothing more.
        """
        while True:
            family = await family_of(self._runs, run_id)
            still_open = [child for past in family for child in _open_below(past)]
            if not still_open or not was_orphaned(fold(run_id, family[-1].events)):
                return family
            for child in still_open:
                with suppress(RunAlreadyEnded):
                    await self._runs.execute(child, FailRun(error=_ROOT_ORPHANED))

    async def chain_of(self, run_id: RunId) -> list[PastRun]:
        """The run and those that it continues, the oldest first."""
        return await chain_of(self._runs, run_id)

    async def _act_on(self, past: PastRun, verdict: Verdict) -> None:
        match verdict:
            case NothingToDo():
                pass
            case Blocked():
                await self._block(past, verdict)
            case Continue(command=create):
                try:
                    definition = await looked_up(self._agents, create)
                except (NotFound, Rejected) as error:
                    await self._block(past, agent_unavailable(str(error)))
                else:
                    await self._continue(past, verdict, definition)
            case _:
                assert_never(verdict)

    async def _continue(self, past: PastRun, verdict: Continue, definition: AgentDefinition) -> None:
        self._drain.admit()
        new = new_run_id()
        await self._opener.open(
            Opening(
                run_id=new,
                create=verdict.command,
                definition=definition,
                alongside=(_note(past, NoteContinued(by=new)),),
                ledger=verdict.ledger,
                patient=True,
            )
        )
        self._metrics.runs_continued.inc()
        log.warning("run.continued", extra={"run_id": str(past.run_id), "by": str(new)})

    async def _block(self, past: PastRun, blocked: Blocked) -> None:
        note = _note(past, blocked.command)
        if note.events:
            await self._log.append(note)
            self._metrics.continuations_blocked.labels(blocked.cause).inc()
            log.warning("run.not_continued", extra={"run_id": str(past.run_id), "reason": blocked.reason})


def _open_below(past: PastRun) -> Iterator[RunId]:
    for chain in past.children.values():
        for child in chain:
            if not fold(child.run_id, child.events).status.ended:
                yield child.run_id
            yield from _open_below(child)


def _note(past: PastRun, command: AfterwardsCommand) -> Change:
    """What the old run's stream says, right behind what was judged."""
    run = fold(past.run_id, past.events)
    return Change(
        stream_id=run_stream(past.run_id),
        expected=Version(run.version),
        tenant=run.created.tenant if run.created else "",
        events=tuple(decide(run, command)),
    )
