"""Finds the runs that nobody answers for any more, by the database's clock, and has them closed (RECON)."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from app.db.pool import translated
from app.settings import RunReconciliationSettings
from app.supervision.orphans import History, Orphan, Orphans, host_of, is_over
from app.supervision.presence import Presence
from app.supervision.singleton import Term
from app.supervision.sql import sql
from domain.events import RunCreated
from domain.ids import RunId

log = logging.getLogger(__name__)

_CLAIM_S = 60.0
"""What was claimed and not settled by then is anybody's."""

_FORGET_HOSTS_S = 86400.0
_BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


class Reconciler:
    """A scan takes page after page until one is not full: `max_runs_per_scan` bounds what is in hand at once.

    - Runs with a heartbeat, `Running` or waiting in their host, that was silent for the orphan threshold.
    - `Running` runs without one that began longer ago than that: their host died before its first beat, or
      does not know them. A host without reconciliation answers for its runs by being there.
    - Runs without one that wait for so long outside of the queue. Their streams do not say where, so while
      there is a host that answers by being there, they may be its own.

    A `Queued` run in the queue is a worker's business, however old it is.

    Everything is closed before anybody is told, for being told is to go on with a run, and that takes time:
    the last of a thousand orphans should not look alive for as long as the others take to be continued.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        orphans: Orphans,
        host: str,
        presence: Presence,
        settings: RunReconciliationSettings,
    ) -> None:
        self._pool = pool
        self._orphans = orphans
        self._host = host
        self._presence = presence
        self._settings = settings
        self._waits = False

    async def scan(self, term: Term) -> None:
        """One round. After an outage of the database everybody is silent, so others get their turn first."""
        if self._presence.steady_s < self._settings.heartbeat_interval:
            if not self._waits:
                log.info("reconciliation.waits", extra={"steady_s": round(self._presence.steady_s, 3)})
            self._waits = True
            return
        self._waits = False
        closed = await self._close_silent(term)
        closed += await self._close_unvouched(term, "unvouched")
        closed += await self._close_unvouched(term, "unvouched_waiting")
        await self._announce(closed, term)
        await self._fetch("forget_hosts", max(_FORGET_HOSTS_S, self._settings.orphan_threshold))

    async def _close_silent(self, term: Term) -> list[RunId]:
        [[began]] = await self._fetch("now")
        limit = self._settings.max_runs_per_scan
        claim_s = min(_CLAIM_S, self._settings.orphan_threshold)
        closed: list[RunId] = []
        claimed: Sequence[asyncpg.Record] | None = None
        while term.lasts() and (claimed is None or len(claimed) == limit):
            claimed = await self._fetch(
                "claim_silent", self._host, self._settings.orphan_threshold, claim_s, began, limit
            )
            found = [self._orphan(row["run_id"], row["host_id"], row["silent"]) for row in claimed]
            closed += await self._close(
                found, await self._orphans.histories([orphan.run_id for orphan in found])
            )
        return closed

    async def _close_unvouched(self, term: Term, name: str) -> list[RunId]:
        limit, after = self._settings.max_runs_per_scan, _BEGINNING
        closed: list[RunId] = []
        page: Sequence[asyncpg.Record] | None = None
        while term.lasts() and (page is None or len(page) == limit):
            page = await self._fetch(name, self._settings.orphan_threshold, *after, limit)
            if page:
                after = (page[-1]["since"], page[-1]["run_id"])
                closed += await self._close_unanswered([RunId(row["run_id"]) for row in page])
        return closed

    async def _close_unanswered(self, run_ids: Sequence[RunId]) -> list[RunId]:
        histories = await self._orphans.histories(run_ids)
        answering = await self._fetch("hosts_answering", self._settings.orphan_threshold)
        alive = {row["host_id"] for row in answering}
        lost = {
            run_id: host_of(history)
            for run_id, history in histories.items()
            if not is_over(history)
            and not self._presence.answers_for(run_id)
            and not _is_answered_for(history, alive)
        }
        claimed = await self._fetch("claim_unvouched", self._host, list(lost), list(lost.values()))
        found = [self._orphan(row["run_id"], lost[row["run_id"]], silent=True) for row in claimed]
        return await self._close(found, histories)

    def _orphan(self, run_id: UUID, host: str, silent: bool) -> Orphan:
        silent_for_s = self._settings.orphan_threshold if silent else None
        return Orphan(run_id=RunId(run_id), host=host, silent_for_s=silent_for_s)

    async def _close(self, found: Sequence[Orphan], histories: Mapping[RunId, History]) -> list[RunId]:
        """Close them together, so that they are committed together. Return those to be announced.

        They keep their claims until then, and what fails keeps its own.
        """
        readable = [orphan for orphan in found if orphan.run_id in histories]
        read = {orphan.run_id: histories[orphan.run_id] for orphan in readable}
        asked = await self._orphans.asked_to_stop(read) if read else {}
        outcomes = await asyncio.gather(
            *(self._orphans.close(one, read[one.run_id], asked.get(one.run_id)) for one in readable),
            return_exceptions=True,
        )
        judged = [(orphan.run_id, outcome) for orphan, outcome in zip(readable, outcomes, strict=True)]
        await self._settle([run_id for run_id, outcome in judged if outcome is False])
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [run_id for run_id, outcome in judged if outcome is True]

    async def _announce(self, closed: Sequence[RunId], term: Term) -> None:
        """Page after page; whoever could not be told of one is told with the next scan."""
        limit = self._settings.max_runs_per_scan
        for start in range(0, len(closed), limit):
            if not term.lasts():
                return
            page = closed[start : start + limit]
            told = await asyncio.gather(*map(self._orphans.announce, page))
            await self._settle([run_id for run_id, settled in zip(page, told, strict=True) if settled])

    async def _settle(self, run_ids: Sequence[RunId]) -> None:
        await self._fetch("settle_claims", run_ids, self._host)

    async def _fetch(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        with translated():
            rows: list[asyncpg.Record] = await self._pool.fetch(sql(name), *arguments)
        return rows


def _is_answered_for(history: History, alive: Collection[str]) -> bool:
    """Whether somebody has the run who writes no heartbeats: a worker will, or a host does by being there."""
    if host := host_of(history):
        return host in alive
    created = history[0].event if history else None
    in_queue = not isinstance(created, RunCreated) or created.queue is not None
    return in_queue or bool(alive)
