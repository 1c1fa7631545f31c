"""The work list as workers use it. Every write after the lease names the lease's term."""

from collections.abc import Mapping
from datetime import timedelta

import asyncpg

from app.db.pool import translated
from app.jobs.lease import Held, LeasedJob
from app.jobs.sql import sql
from domain.ids import RunId
from projections.jobs import CHANNEL


class JobQueue:
    """Every method raises StoreUnavailable."""

    def __init__(self, pool: asyncpg.Pool, host: str, agents: tuple[str, ...]) -> None:
        self._pool = pool
        self._host = host
        self._agents = agents

    async def lease(self, free: Mapping[str, int], at_most: int, duration_s: float) -> list[LeasedJob]:
        """Jobs of agents that this host knows, or that are their tenant's own.

        Up to so many of each lane, the lanes in this order.
        """
        with translated():
            rows = await self._pool.fetch(
                sql("lease"),
                list(free),
                list(free.values()),
                at_most,
                self._agents,
                self._host,
                timedelta(seconds=duration_s),
            )
        return [LeasedJob(**row) for row in rows]

    async def finish(self, run_id: RunId, term: int) -> None:
        """The job's run has ended: nobody needs to look at it again."""
        with translated():
            await self._pool.execute(sql("finish"), run_id, term)

    async def let_go(self, leases: Mapping[RunId, Held]) -> None:
        """Let other workers have these jobs at once. Nothing may be working on them any more."""
        terms = [held.term for held in leases.values()]
        begun = [held.begun for held in leases.values()]
        with translated():
            await self._pool.execute(sql("let_go"), list(leases), terms, begun, CHANNEL)
