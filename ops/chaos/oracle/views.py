"""The views that the hosts left are those that the log makes."""

from collections.abc import AsyncIterator

import asyncpg

from app.store.event_log import EventLog
from ops.chaos.received import Violation
from projections.catalog import PROJECTIONS
from projections.projector import Progress, Projector
from projections.rebuild import rebuild
from tests.projections.tables import TABLES

_CLAIMS = {"job_queue": ("attempts", "term", "owner", "leased_until")}
"""Columns that no event tells."""


async def views(pool: asyncpg.Pool, log: EventLog) -> AsyncIterator[Violation]:
    """Fold what the hosts have not folded yet, then all of it again, and compare (EVENT-6)."""
    for projection in PROJECTIONS:
        projector = Projector(projection, pool, log)
        while await projector.fold_page() is not Progress.NOTHING_NEW:
            pass
        before = await _rows(pool, projection.name)
        await rebuild(projection, pool, log)
        after = await _rows(pool, projection.name)
        for table in before:
            for row in before[table] ^ after[table]:
                side = "the hosts made" if row in before[table] else "only a rebuild makes"
                yield Violation(rule="views", what=f"{table}: {side} this row: {row}")


async def jobs(pool: asyncpg.Pool) -> AsyncIterator[Violation]:
    """Nothing waits for a worker any more when every run has ended (JOB-1). After `views`."""
    for row in await pool.fetch("SELECT run_id FROM job_queue"):
        yield Violation(rule="jobs", what="it is still in the work list", run_id=row["run_id"])
    for row in await pool.fetch("SELECT run_id, status FROM jobs WHERE ended_at IS NULL"):
        yield Violation(rule="jobs", what=f"its job is still {row['status']}", run_id=row["run_id"])


async def _rows(pool: asyncpg.Pool, name: str) -> dict[str, set[tuple[tuple[str, str], ...]]]:
    found = {}
    for table in TABLES[name]:
        rows = await pool.fetch(f"SELECT * FROM {table}")
        skipped = _CLAIMS.get(table, ())
        found[table] = {
            tuple((column, repr(value)) for column, value in row.items() if column not in skipped)
            for row in rows
        }
    return found
