"""Pools, codecs, and what the driver's errors become."""

import asyncpg


async def test_json_is_python_values_both_ways(pool: asyncpg.Pool) -> None:
    assert await pool.fetchval("SELECT $1::jsonb", {"a": [1, None]}) == {"a": [1, None]}
