"""Closing a run whose host is gone."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import cast

import msgspec

from app.metrics import Metrics
from app.store.event_log import EventLog, VersionConflict
from app.supervision.cancels import Cancels
from app.supervision.closing import Closing
from domain.codec import UnknownTopic, UnreadableEvent
from domain.commands import CloseAbandoned
from domain.continuation import ORPHANED
from domain.errors import Unavailable
from domain.events import Recorded, RunCancelled, RunCreated, RunEnd, RunEvent, RunFailed, RunStarted
from domain.evolve import fold
from domain.failure import ErrorClass, RunError
from domain.ids import RunId, run_stream

log = logging.getLogger(__name__)

History = list[Recorded[RunEvent]]
OnOrphaned = Callable[[RunId], Awaitable[None]]
"""Told of a run that was closed as orphaned: at least once, so be content with being told twice."""


class Orphan(msgspec.Struct, frozen=True, kw_only=True):
    """A run that nobody answers for."""

    run_id: RunId
    host: str
    """Empty where its stream does not name one."""
    silent_for_s: float | None
    """For how long at least; None: its host has given it up."""

    @property
    def error(self) -> RunError:
        who = f"its host {self.host}" if self.host else "the host that accepted it"
        if self.silent_for_s is None:
            message = f"{who} stopped before the run had ended"
        else:
            message = (
                f"{who} was not heard of for {self.silent_for_s:g} s (run_reconciliation.orphan_threshold)"
            )
        return RunError(message=message, type=ORPHANED, error_class=ErrorClass.INFRASTRUCTURE)


class Orphans:
    """Closes them, and then tells who is waiting for that."""

    def __init__(self, event_log: EventLog, cancels: Cancels, metrics: Metrics) -> None:
        self._log = event_log
        self._cancels = cancels
        self._closing = Closing(event_log, cancels)
        self._metrics = metrics
        self.on_orphaned: list[OnOrphaned] = []

    async def histories(self, run_ids: Sequence[RunId]) -> dict[RunId, History]:
        """The streams of these runs, in one query; empty for what is no run.

        One that cannot be read is left out, and left as it is: a build that can read it will come.
        """
        try:
            recorded = await self._log.read_streams({run_stream(run_id): 0 for run_id in run_ids})
        except (UnknownTopic, UnreadableEvent):
            return await self._one_by_one(run_ids)
        found: dict[RunId, History] = {run_id: [] for run_id in run_ids}
        for one in cast(History, recorded):
            found[RunId(one.stream_id)].append(one)
        return found

    async def asked_to_stop(self, histories: Mapping[RunId, History]) -> dict[RunId, str]:
        """Those that somebody has cancelled, or the root of their tree, and why. Raise StoreUnavailable.

        Ask after a run was claimed: no word is left for it from then on.
        """
        roots = {run_id: root for run_id, history in histories.items() if (root := _root_of(history))}
        left = await self._cancels.left_for([*histories, *roots.values()])
        left = {**await self._cancelled_with(set(roots.values()) - left.keys()), **left}
        asked = {run_id: left[root] for run_id, root in roots.items() if root in left}
        return {**asked, **{run_id: left[run_id] for run_id in histories if run_id in left}}

    async def _cancelled_with(self, roots: Collection[RunId]) -> dict[RunId, str]:
        """Of these runs those that were cancelled. Nobody has to leave word for them any more."""
        if not roots:
            return {}
        return {
            root: one.event.reason
            for root, history in (await self.histories(sorted(roots))).items()
            for one in history
            if isinstance(one.event, RunCancelled)
        }

    async def close(self, orphan: Orphan, history: History, asked: str | None = None) -> bool:
        """Close the run, if it is still open and nobody moves it.

        `asked`: why it was to be stopped, if that was asked of its owner. Return whether it has to be
        announced: it is closed as orphaned, by this or before. If not, the matter is settled.
        """
        if not history or not isinstance(history[0].event, RunCreated):
            return False
        return await self._was_orphaned(orphan, history, asked)

    async def announce(self, run_id: RunId) -> bool:
        """Tell of a closed run. Return whether the matter is settled; if not, announce it again later.

        A listener that crashes is logged, here.
        """
        try:
            for told in self.on_orphaned:
                await told(run_id)
        except Unavailable as error:
            log.warning("orphan.not_announced", extra={"run_id": str(run_id), "error": str(error)})
            return False
        except Exception:
            log.exception("orphan.not_announced", extra={"run_id": str(run_id)})
            return False
        return True

    async def _was_orphaned(self, orphan: Orphan, history: History, asked: str | None) -> bool:
        """Whether it is closed as orphaned. Compare and set: its owner or another reconciler may be first."""
        run = fold(orphan.run_id, (recorded.event for recorded in history))
        if run.status.ended:
            return any(_says_orphaned(recorded.event) for recorded in history)
        try:
            events = await self._closing.append(run, CloseAbandoned(error=orphan.error, asked=asked))
        except VersionConflict:
            self._metrics.reconciliation_conflicts.inc()
            return False
        self._metrics.runs_orphaned.inc()
        log.warning("run.orphaned", extra={"run_id": str(orphan.run_id), "host": orphan.host})
        return any(_says_orphaned(event) for event in events)

    async def _one_by_one(self, run_ids: Sequence[RunId]) -> dict[RunId, History]:
        found: dict[RunId, History] = {}
        for run_id in run_ids:
            try:
                found[run_id] = cast(History, await self._log.read_stream(run_stream(run_id)))
            except (UnknownTopic, UnreadableEvent) as error:
                log.error("orphan.unreadable", extra={"run_id": str(run_id), "error": str(error)})
        return found


def host_of(history: History) -> str:
    """The host that began the run; empty if none did."""
    return next((one.event.host for one in history if isinstance(one.event, RunStarted)), "")


def _root_of(history: History) -> RunId | None:
    created = history[0].event if history else None
    return created.root_run_id if isinstance(created, RunCreated) else None


def is_over(history: History) -> bool:
    """Whether the run has ended, whatever a view says that is behind."""
    return any(isinstance(one.event, RunEnd) for one in history)


def _says_orphaned(event: RunEvent) -> bool:
    return isinstance(event, RunFailed) and event.error_type == ORPHANED
