"""How far a projection has come: its row in `notification_tracking`, and the claim to work on it."""

import asyncpg

from projections.base import Connection
from projections.sql import sql


async def open_position(pool: asyncpg.Pool, name: str) -> None:
    """Make sure of the row. Never within a longer transaction: others would wait for its end."""
    await pool.execute(sql("open_position"), name)


async def claim(conn: Connection, name: str) -> int | None:
    """The position, which is ours until the transaction ends; None while another host has it."""
    position: int | None = await conn.fetchval(sql("claim_position"), name)
    return position


async def hold(conn: Connection, name: str) -> None:
    """The same, waiting until whoever works on it has committed a page."""
    await conn.execute(sql("hold_position"), name)


async def advance(conn: Connection, name: str, position: int) -> None:
    """Only within the transaction that claimed it."""
    await conn.execute(sql("advance_position"), name, position)


async def position_of(pool: asyncpg.Pool, name: str) -> int:
    """What has been committed; 0 before the first page."""
    return await pool.fetchval(sql("position"), name) or 0
