"""The workflows that a tenant has defined over HTTP."""

import asyncpg
import msgspec

from domain.workflow.definition import WorkflowDefinition
from projections.read.snapshot import snapshot
from projections.sql import sql
from projections.values import storable

_definitions = msgspec.json.Decoder(WorkflowDefinition)


async def defined_workflows(pool: asyncpg.Pool, tenant: str) -> tuple[tuple[WorkflowDefinition, int], ...]:
    """Each with its version, by name, maybe some milliseconds behind. Raises Unavailable."""
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("list_workflow_definitions"), storable(tenant))
    return tuple((_definitions.decode(row["definition"]), row["version"]) for row in rows)
