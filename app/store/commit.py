"""One batch to the database and back: each append is stored whole, or refused for itself."""

import time
from collections.abc import Sequence
from uuid import uuid4

import asyncpg

from app.db.errors import StoreUnavailable
from app.db.pool import translated
from app.faults import fault_point
from app.metrics import Metrics
from app.store.batch import Append, Batch, Placed
from app.store.errors import VersionConflict
from app.store.sql import sql
from domain.events import Event, Recorded

REPLY_TIMEOUT_S = 15.0
"""A batch takes milliseconds; this long without a word means that the connection is dead."""

_PASSING = (
    asyncpg.LockNotAvailableError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.TransactionRollbackError,
)
"""Refusals that say nothing about what was sent: the same may be stored the next time."""

_LOST_RACE = ("stored_events_one_writer", "stored_events_no_gap")

Outcome = list[Recorded[Event]] | VersionConflict | asyncpg.PostgresError | ValueError
"""An append's events as recorded, or why it was refused."""


class Committer:
    """`id` marks the rows that are written through it, so that they can be told from another host's."""

    def __init__(self, metrics: Metrics, *, strict: bool) -> None:
        self.id = uuid4()
        self._metrics = metrics
        self._strict = strict

    async def commit(
        self, connection: asyncpg.Connection, appends: Sequence[Append]
    ) -> list[tuple[Append, Outcome]]:
        """The outcome of each append. Raise StoreUnavailable when that of any is unknown."""
        batch = Batch(appends)
        try:
            placed = await self._send(connection, batch)
        except (asyncpg.PostgresError, ValueError) as error:
            if len(appends) == 1:
                return [(appends[0], error)]
            # Postgres refuses something in the batch for itself. Find it: the others are not to suffer.
            return [one for append in appends for one in await self.commit(connection, [append])]
        return list(batch.outcomes(placed))

    async def _send(self, connection: asyncpg.Connection, batch: Batch) -> list[Placed]:
        fault_point("append.before")
        began = time.perf_counter()
        apart = any(append.resent for append in batch.appends)
        placed = None if apart else await self._together(connection, batch)
        while placed is None:
            apart = True
            # Each round sees what beat the one before, so at most every append loses once.
            placed = await self._apart(connection, batch)
        fault_point("append.after")
        took = self._metrics.append_seconds.labels("conflict" if apart else "written")
        took.observe(time.perf_counter() - began)
        self._metrics.append_events.observe(batch.events)
        return placed

    async def _together(self, connection: asyncpg.Connection, batch: Batch) -> list[Placed] | None:
        rows = await self._fetch(connection, "append", *batch.followed(), *batch.columns())
        if rows is None:
            return None
        [row] = rows
        return [Placed(position, row["stamp"]) for position in row["positions"]]

    async def _apart(self, connection: asyncpg.Connection, batch: Batch) -> list[Placed] | None:
        rows = await self._fetch(connection, "append_apart", *batch.numbers(), *batch.columns())
        return None if rows is None else [Placed(*row) for row in rows]

    async def _fetch(
        self, connection: asyncpg.Connection, name: str, *arguments: Sequence[object]
    ) -> list[asyncpg.Record] | None:
        """None when some append of the batch came too late: nothing was stored."""
        try:
            with translated():
                return await connection.fetch(
                    sql(name), self._strict, self.id, *arguments, timeout=REPLY_TIMEOUT_S
                )
        except _PASSING as error:
            raise StoreUnavailable(f"Postgres did not take the batch: {error}") from error
        except asyncpg.IntegrityConstraintViolationError as error:
            if error.constraint_name not in _LOST_RACE:
                raise
            return None
