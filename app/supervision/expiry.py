"""Closes approvals that nobody decided in time. Any number of hosts may do it (SINGLE-1)."""

import asyncpg

from app.supervision.approvals import Approvals
from app.supervision.singleton import Term
from projections.read.approvals import Overdue, overdue_approvals

_AT_ONCE = 100


class Expiry:
    """Looks into the view for what is overdue; the approval itself says whether it is."""

    def __init__(self, pool: asyncpg.Pool, approvals: Approvals) -> None:
        self._pool = pool
        self._approvals = approvals

    async def sweep(self, term: Term) -> None:
        """One round over all of them, page by page."""
        page: list[Overdue] | None = None
        while term.lasts() and (page is None or len(page) == _AT_ONCE):
            page = await overdue_approvals(self._pool, _AT_ONCE, page[-1] if page else None)
            for overdue in page:
                if term.lasts():
                    await self._approvals.expire(overdue.run_id)
