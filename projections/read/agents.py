"""The agents that a tenant has defined over HTTP."""

import asyncpg
import msgspec

from domain.agent import AgentDefinition
from projections.read.snapshot import snapshot
from projections.sql import sql
from projections.values import storable

_definitions = msgspec.json.Decoder(AgentDefinition)


async def defined_agents(pool: asyncpg.Pool, tenant: str) -> tuple[AgentDefinition, ...]:
    """By name, maybe some milliseconds behind. Raises Unavailable."""
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("list_agent_definitions"), storable(tenant))
    return tuple(_definitions.decode(row["definition"]) for row in rows)
