"""What people decide of waiting runs, and the duty of closing what nobody decided."""

from functools import partial

import asyncpg

from app.db.pool import database_time
from app.settings.whole import Settings
from app.store.event_log import EventLog
from app.supervision.approvals import Approvals
from app.supervision.duties import Duties, Duty
from app.supervision.expiry import Expiry
from app.supervision.runs import Runs


def approvals_of(
    settings: Settings, pool: asyncpg.Pool, event_log: EventLog, runs: Runs, duties: Duties
) -> Approvals:
    """Closing those that have expired becomes a duty (SINGLE-1)."""
    approvals = Approvals(
        event_log, runs, partial(database_time, pool), max_attempts=settings.async_run.max_attempts
    )
    expiry = Expiry(pool, approvals)
    period_s = settings.approvals.expiry_interval
    duties.add(Duty(name="approval_expiry", period_s=period_s, perform=expiry.sweep))
    return approvals
