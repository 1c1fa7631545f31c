"""Closes approvals that nobody decided in time. Any number of hosts may do it (SINGLE-1)."""

import asyncpg

from app.supervision.approvals import Approvals
from app.supervision.singleton import Term
from domain.ids import RunId
from projections.read.approvals import overdue_approvals

_AT_ONCE = 100


class Expiry:
    """Looks into the view for what is overdue; the approval itself says whether it is."""

    def __init__(self, pool: asyncpg.Pool, approvals: Approvals) -> None:
        self._pool = pool
        self._approvals = approvals

    async def sweep(self, term: Term) -> None:
        """One round. What the view is late with is closed by the next one."""
        seen: set[RunId] = set()
        while term.lasts():
            found = [one for one in await overdue_approvals(self._pool, _AT_ONCE) if one not in seen]
            for run_id in found:
                if term.lasts():
                    await self._approvals.expire(run_id)
            seen.update(found)
            if not found:
                return
