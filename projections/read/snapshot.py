"""One state of the views for as long as a reader needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from projections.base import Connection
from projections.unavailable import told_as_unavailable


@asynccontextmanager
async def snapshot(pool: asyncpg.Pool) -> AsyncIterator[Connection]:
    """A connection that sees one state of all views. Raises Unavailable when Postgres cannot be reached.

    Queries are planned for their arguments: a filter not asked for costs nothing, and one asked for finds its
    index. A plan kept for all arguments could do neither.
    """
    with told_as_unavailable():
        async with pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
            await conn.execute("SET LOCAL plan_cache_mode = force_custom_plan")
            yield conn
