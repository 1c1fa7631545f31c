"""Cancels that were accepted: word of each stands in the database until its run has ended (CANCEL-1, 2)."""

import logging
from collections.abc import Awaitable, Callable, Sequence

import asyncpg

from app.db.errors import DatabaseError
from app.db.pool import translated
from app.metrics import Metrics
from app.outage import Outage
from app.settings import CancellationSettings
from app.store.event_log import EventLog
from app.supervision.sql import sql
from domain.codec import UnknownTopic, UnreadableEvent
from domain.errors import Conflict
from domain.ids import RunId
from domain.run import RunStatus
from projections.values import storable

log = logging.getLogger(__name__)

CHANNEL = "tracon_cancels"
"""Where a host is rung for, by its id."""

_POLL_S = 1.0


class RunNotHere(Conflict):
    """The run is live, but no actor of this host owns it. Send the request to its owner."""

    code = "run_not_here"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"run {run_id} is not running on this host")


class OwnerGone(Conflict):
    """Nobody can be told: the run's host was not heard of. Reconciliation closes the run, if that is on."""

    code = "run_owner_gone"

    def __init__(self, run_id: RunId, host: str) -> None:
        super().__init__(f"run {run_id} cannot be told to stop: the host {host}, which runs it, is gone")


class Cancels:
    """Both ends of a host's mail: word left for a run's owner, and word that was left for this host.

    An owner may die before it has read its mail, or before what it has read is on record. So word is not
    taken away when it is read: whoever closes the run in its owner's place finds it there (`left_for`).
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        event_log: EventLog,
        host: str,
        settings: CancellationSettings,
        gone_after_s: float,
        metrics: Metrics,
    ) -> None:
        self._pool = pool
        self._log = event_log
        self._host = host
        self._settings = settings
        self._gone_after_s = gone_after_s
        self._metrics = metrics
        self._outage = Outage(log, "cancel requests")
        self.on_waiting: Callable[[RunId, str], Awaitable[object]] | None = None
        """Have the run, which came to wait for a person before it heard of its cancel, wait no more."""

    async def send(self, run_id: RunId, owner: str, reason: str) -> None:
        """Reach the run's owner. Raise RunNotHere or OwnerGone, or StoreUnavailable.

        When this returns, the owner will be told, or whoever closes the run in its place will end it as
        cancelled; unless it had ended before, which the caller has to see for itself.
        """
        if self._settings.scope == "process":
            self._metrics.cancels.labels("not_here").inc()
            raise RunNotHere(run_id)
        with translated():
            if not await self._is_alive(owner):
                self._metrics.cancels.labels("owner_gone").inc()
                raise OwnerGone(run_id, owner)
        await self._leave(run_id, owner, reason)
        self._metrics.cancels.labels("elsewhere").inc()

    async def keep(self, run_id: RunId, reason: str) -> None:
        """The run is on this host and was told. See to it that this is so if the host dies now.

        Raise OwnerGone if somebody is closing the run, because this host was not heard of; StoreUnavailable.
        """
        await self._leave(run_id, self._host, reason)
        self._metrics.cancels.labels("here").inc()

    async def take_back(self, run_id: RunId) -> None:
        """The word that was left was too late, and nobody is to go by it. Raise StoreUnavailable."""
        with translated():
            await self._pool.execute(sql("take_cancel_back"), run_id)

    async def left_for(self, run_ids: Sequence[RunId]) -> dict[RunId, str]:
        """Those of the runs that somebody has asked to stop, each with the reason. Raise StoreUnavailable."""
        with translated():
            rows = await self._pool.fetch(sql("cancels_left"), run_ids)
        return {RunId(row["run_id"]): row["reason"] for row in rows}

    async def heed(self, run_id: RunId) -> bool:
        """Before a person's word on a waiting run is acted on: whoever cancelled the run was first.

        A cancel looks at the run after it has left word, and this looks for word when the run is known to
        wait: one of them sees the other. Return whether there was word. Raise StoreUnavailable.
        """
        asked = await self.left_for([run_id])
        if run_id in asked and self.on_waiting is not None:
            await self.on_waiting(run_id, asked[run_id])
        return run_id in asked

    async def settle(self) -> None:
        """Word for runs that have ended needs nobody any more. Raise StoreUnavailable.

        But a run that waits for a person was to end for good: what it waits for must not be granted now.
        """
        with translated():
            rows = await self._pool.fetch(sql("cancels_of_ended"))
        settled = [row["run_id"] for row in rows if await self._is_settled(row)]
        with translated():
            await self._pool.execute(sql("forget_cancels"), settled)

    async def receive(self, deliver: Callable[[RunId, str], bool]) -> None:
        """Hand over what is left for this host, again and again. `deliver` says whether it has the run."""
        with self._log.bell_of(CHANNEL, self._host) as bell:
            while True:
                bell.silence()
                await self._collect(deliver)
                await bell.wait(_POLL_S)

    async def _leave(self, run_id: RunId, owner: str, reason: str) -> None:
        with translated():
            left = await self._pool.fetch(sql("request_cancel"), run_id, owner, storable(reason), CHANNEL)
        if not left:
            self._metrics.cancels.labels("owner_gone").inc()
            raise OwnerGone(run_id, owner)

    async def _is_settled(self, row: asyncpg.Record) -> bool:
        if not RunStatus(row["status"]).awaits:
            return True
        if self.on_waiting is None:
            return False
        try:
            await self.on_waiting(RunId(row["run_id"]), row["reason"])
        except (UnknownTopic, UnreadableEvent):
            return False  # a build that can read it will come
        return True

    async def _is_alive(self, host: str) -> bool:
        return bool(await self._pool.fetchval(sql("is_host_alive"), host, self._gone_after_s))

    async def _collect(self, deliver: Callable[[RunId, str], bool]) -> None:
        try:
            with translated():
                rows = await self._pool.fetch(sql("cancel_requests"), self._host)
            here = [deliver(RunId(row["run_id"]), row["reason"]) for row in rows]
            if not all(here):
                await self.settle()
        except (DatabaseError, asyncpg.PostgresError) as error:
            self._outage.met(error)
        else:
            self._outage.over()
