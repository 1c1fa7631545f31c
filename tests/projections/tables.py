"""Every row of a view, for comparing."""

from typing import Any

from projections.base import Connection, Fact, Projection

TABLES = {
    "runs": ("runs",),
    "statistics": ("statistics_calls", "statistics_reports", "statistics_agents", "statistics_live_runs"),
    "tools": ("tool_calls",),
    "jobs": ("jobs", "job_queue"),
    "schedules": ("schedules",),
    "idempotency": ("idempotency",),
    "approvals": ("approvals",),
    "agents": ("agent_definitions",),
    "workflows": ("workflow_definitions",),
}


async def rows_of(conn: Connection, name: str) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the projection's tables, in the order of their keys."""
    return {
        table: [tuple(row) for row in await conn.fetch(f"SELECT * FROM {table} AS t ORDER BY t")]
        for table in TABLES[name]
    }


async def folded(conn: Connection, projection: Projection, *pages: list[Fact]) -> dict[str, Any]:
    """The rows after these pages, from nothing."""
    await projection.reset(conn)
    for page in pages:
        await projection.apply(conn, page)
    return await rows_of(conn, projection.name)
