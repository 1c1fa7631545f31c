"""Cancelling a run of another host: word for its owner is left in the database (CANCEL-2)."""

import logging
from collections.abc import Callable

import asyncpg

from app.db.errors import DatabaseError
from app.db.pool import translated
from app.metrics import Metrics
from app.settings import CancellationSettings
from app.store.event_log import EventLog
from app.supervision.sql import sql
from domain.errors import Conflict
from domain.ids import RunId
from projections.values import storable

log = logging.getLogger(__name__)

CHANNEL = "tracon_cancels"
"""Where a host is rung for, by its id."""

_POLL_S = 1.0
_UNDELIVERED_S = 60.0
"""Word for a run that its host does not have by then is word for a run that has ended."""


class RunNotHere(Conflict):
    """The run is live, but no actor of this host owns it. Send the request to its owner."""

    code = "run_not_here"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"run {run_id} is not running on this host")


class OwnerGone(Conflict):
    """Nobody can be told: the run's host was not heard of. Reconciliation closes the run, if that is on."""

    code = "run_owner_gone"

    def __init__(self, run_id: RunId, host: str | None) -> None:
        owner = f"the host {host}, which runs it," if host else "the host that runs it"
        super().__init__(f"run {run_id} cannot be told to stop: {owner} is gone")


class Cancels:
    """Both ends of a host's mail: word left for other hosts, and word that they left for this one."""

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

    async def send(self, run_id: RunId, owner: str | None, reason: str) -> None:
        """Reach the run's owner. Raise RunNotHere or OwnerGone, or StoreUnavailable.

        When this returns, the owner will be told, or the run will be closed because its owner is gone.
        """
        if self._settings.scope == "process":
            self._metrics.cancels.labels("not_here").inc()
            raise RunNotHere(run_id)
        with translated():
            owner = owner or await self._pool.fetchval(sql("owner_of_waiting"), run_id)
            if owner is None or not await self._is_alive(owner):
                self._metrics.cancels.labels("owner_gone").inc()
                raise OwnerGone(run_id, owner)
            await self._pool.execute(sql("request_cancel"), run_id, owner, storable(reason), CHANNEL)
        self._metrics.cancels.labels("elsewhere").inc()

    async def receive(self, deliver: Callable[[RunId, str], bool]) -> None:
        """Hand over what is left for this host, for ever. `deliver` says whether it had the run."""
        with self._log.bell_of(CHANNEL, self._host) as bell:
            while True:
                bell.silence()
                await self._collect(deliver)
                await bell.wait(_POLL_S)

    async def _is_alive(self, host: str) -> bool:
        return bool(await self._pool.fetchval(sql("is_host_alive"), host, self._gone_after_s))

    async def _collect(self, deliver: Callable[[RunId, str], bool]) -> None:
        try:
            with translated():
                rows = await self._pool.fetch(sql("cancel_requests"), self._host)
                delivered = [row["run_id"] for row in rows if deliver(RunId(row["run_id"]), row["reason"])]
                if rows:
                    await self._pool.execute(sql("settle_cancel_requests"), delivered, _UNDELIVERED_S)
        except (DatabaseError, asyncpg.PostgresError) as error:
            log.warning("cancels.not_collected", extra={"error": str(error)})
