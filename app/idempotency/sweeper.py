"""Settling keys whose run has ended and whose host did not live to say so (IDEM-5)."""

import logging

import asyncpg

from app.idempotency.settling import Settling
from projections.read.idempotency import unsettled

log = logging.getLogger(__name__)

LATE_S = 10.0
"""How long after a run's end its own host may still be about to settle its key."""


class Sweeper:
    """One round goes through all that the view shows. What is not certain is left as it is."""

    def __init__(self, pool: asyncpg.Pool, settling: Settling) -> None:
        self._pool = pool
        self._settling = settling

    async def sweep(self, late_s: float = LATE_S) -> int:
        """How many were settled. Raises Unavailable."""
        settled = 0
        async for tenant, name in unsettled(self._pool, late_s):
            settled += not (await self._settling.settle(tenant, name)).key.in_progress
        if settled:
            log.info("idempotency.swept", extra={"keys": settled})
        return settled
