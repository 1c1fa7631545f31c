"""How far a projection has come: its row in `notification_tracking`, and the claim to work on it."""

import asyncpg

from projections.base import Connection
from projections.sql import sql


async def claim(conn: Connection, name: str) -> int | None:
    """The position, which is ours until the transaction ends; None while another host has it."""
    position: int | None = await conn.fetchval(sql("claim_position"), name)
    if position is None and await _opened(conn, name):
        position = await conn.fetchval(sql("claim_position"), name)
    return position


async def hold(conn: Connection, name: str) -> None:
    """The same, waiting until whoever works on it has committed a page."""
    await _opened(conn, name)
    await conn.execute(sql("hold_position"), name)


async def advance(conn: Connection, name: str, position: int) -> None:
    """Only within the transaction that claimed it."""
    await conn.execute(sql("advance_position"), name, position)


async def position_of(pool: asyncpg.Pool, name: str) -> int:
    """What has been committed; 0 before the first page."""
    return await pool.fetchval(sql("position"), name) or 0


async def _opened(conn: Connection, name: str) -> bool:
    """Whether the row was missing; it is there now."""
    status: str = await conn.execute(sql("open_position"), name)
    return status == "INSERT 0 1"
