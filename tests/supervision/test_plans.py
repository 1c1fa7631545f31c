"""What is asked periodically is answered from the few rows that it is about, however many runs there were."""

from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import pytest

from app.supervision.sql import sql
from projections.base import Connection
from tests.projections.read.plans import indexes_of

ENDED = 20_000
_GROW = """
INSERT INTO runs (run_id, tenant_id, kind, agent, status, root_run_id, depth, input_tokens, output_tokens,
                  cached_input_tokens, reasoning_tokens, events, created_at, started_at, ended_at)
SELECT run_id, 'default', 'agent', 'a', status, run_id, 0, 0, 0, 0, 0, 5, now() - age, now() - age,
       CASE status WHEN 'Completed' THEN now() END
  FROM (SELECT gen_random_uuid() AS run_id, number * interval '1 minute' AS age,
               CASE WHEN number <= 10 THEN 'Running' WHEN number <= 20 THEN 'Queued' ELSE 'Completed' END
                   AS status
          FROM generate_series(1, $1) AS number) AS one
"""
_BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


@pytest.fixture
async def grown(pool: asyncpg.Pool) -> asyncpg.Pool:
    """Twenty thousand runs that have ended, and twenty that have not."""
    await pool.execute(_GROW, ENDED)
    for table in ("runs", "jobs", "run_heartbeats", "cancel_requests"):
        await pool.execute(f"ANALYZE {table}")
    return pool


@pytest.mark.parametrize(
    ("name", "arguments", "index"),
    [
        ("unvouched", (300.0, *_BEGINNING, 100), "runs_running"),
        ("unvouched_waiting", (300.0, *_BEGINNING, 100), "runs_waiting"),
        ("fleet", (300.0,), "runs_running"),
        ("cancels_of_ended", (), "runs_one_row"),
    ],
)
async def test_no_duty_reads_the_runs_that_have_ended(
    grown: asyncpg.Pool, name: str, arguments: tuple[object, ...], index: str
) -> None:
    """RECON-2, CANCEL-2"""
    async with grown.acquire() as conn, conn.transaction():
        before = await _scanned(conn)
        await conn.fetch(sql(name), *arguments)
        assert await _scanned(conn) == before, "the whole of `runs` was read"
        plan = await conn.fetch(f"EXPLAIN {sql(name)}", *arguments)
    assert index in "\n".join(row[0] for row in plan)


@pytest.mark.parametrize("name", ["unvouched", "unvouched_waiting"])
async def test_pages_of_open_runs_come_in_the_order_of_their_index(grown: asyncpg.Pool, name: str) -> None:
    """RECON-1: without a sort, so that a page costs what is on it."""
    used = await indexes_of(grown, sql(name), 300.0, *_BEGINNING, 100)
    assert "Sort" not in used


async def _scanned(conn: Connection) -> int:
    """How many times all of `runs` was read in this transaction."""
    scans: int = await conn.fetchval("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'runs'")
    return scans
