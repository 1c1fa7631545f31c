"""A writer whose transactions stay open for as long as a test wants."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from asyncpg.transaction import Transaction

from app.db.pool import connect
from app.store.mapper import EventMapper
from app.store.sql import sql
from domain.ids import StreamId
from tests.store.samples import said, stream


class SlowWriter:
    """Its position is drawn, and nobody sees it yet."""

    def __init__(self, database: str) -> None:
        self._connect = partial(connect, database)

    @asynccontextmanager
    async def append(self, text: str, stream_id: StreamId | None = None) -> AsyncIterator[Transaction]:
        """One event, in a transaction that is the caller's to end. Left open, it dies with its connection."""
        connection = await self._connect()
        try:
            transaction = connection.transaction()
            await transaction.start()
            topic, state = EventMapper().seal(said(text))
            row = ([stream_id or stream()], [1], [topic], [state], ["default"])
            await connection.fetch(sql("append"), False, None, [], [], *row)
            yield transaction
        finally:
            await connection.close()
