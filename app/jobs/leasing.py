"""All that has to do with this host's leases: where they come from, who holds and who renews them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from app.db.errors import StoreUnavailable
from app.jobs.keeper import Connect, LeaseKeeper
from app.jobs.lease import HeldLeases
from app.jobs.queue import JobQueue
from app.settings import AsyncRunSettings

_LET_GO_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Leasing:
    queue: JobQueue
    leases: HeldLeases
    keeper: LeaseKeeper


@asynccontextmanager
async def open_leases(
    queue: JobQueue, connect: Connect, settings: AsyncRunSettings, *, silence_s: float
) -> AsyncIterator[Leasing]:
    """Leases are kept while the block lasts. What is still held then goes to other workers at once.

    When it ends nothing may be working on a job any more.
    """
    leases = HeldLeases(settings.lease_duration)
    try:
        async with LeaseKeeper(connect, leases, silence_s=silence_s) as keeper:
            yield Leasing(queue=queue, leases=leases, keeper=keeper)
    finally:
        # After the keeper has stopped, or it might renew what is let go.
        if held := leases.all():
            with suppress(StoreUnavailable, TimeoutError):  # then the leases run out
                async with asyncio.timeout(_LET_GO_S):
                    await queue.let_go(held)
