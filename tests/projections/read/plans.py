"""Which indexes a statement is answered from, on tables that are large enough to matter."""

from collections.abc import Iterator
from typing import Any

import asyncpg
import msgspec

from projections.read.snapshot import snapshot
from projections.sql import sql


async def indexes_used(pool: asyncpg.Pool, statement: str, *arguments: object) -> set[str]:
    """The names of the indexes in the plan; 'Seq Scan' or 'Sort' stand for themselves."""
    return await indexes_of(pool, sql(statement), *arguments)


async def indexes_of(pool: asyncpg.Pool, text: str, *arguments: object) -> set[str]:
    """The same for the text of a statement."""
    async with snapshot(pool) as conn:
        plan = await conn.fetchval(f"EXPLAIN (FORMAT JSON) {text}", *arguments)
    parsed: Any = msgspec.json.decode(plan) if isinstance(plan, str) else plan
    return set(_notable(parsed[0]["Plan"]))


def _notable(node: dict[str, Any]) -> Iterator[str]:
    if "Index Name" in node:
        yield node["Index Name"]
    if node["Node Type"] in ("Seq Scan", "Sort", "Incremental Sort"):
        yield node["Node Type"]
    for child in node.get("Plans", []):
        yield from _notable(child)
