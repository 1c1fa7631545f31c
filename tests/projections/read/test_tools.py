"""Lists of tool calls across runs: one tenant's, filtered, newest first."""

from uuid import UUID

import asyncpg
import msgspec

from domain.ids import RunId
from projections.base import Fact
from projections.read.tools import ToolCallFilter, ToolCallPage, list_tool_calls
from projections.tool_calls import ToolCallState, tool_calls_of
from tests.domain.facts import OPENED, asked_for, call, invoking, returned, tool_failed
from tests.projections.read.conftest import Show
from tests.projections.read.plans import indexes_used
from tests.projections.story import in_one_log, minute, stream

A, B, C = call("a"), call("b", "refund"), call("c", "x" * 5000)


def run(number: int, tenant: str = "acme") -> list[Fact]:
    facts = (*OPENED, *asked_for(A, B, C), invoking(A), returned(A, "ok"), tool_failed(C, "no such tool"))
    return [
        msgspec.structs.replace(recorded, at=minute(10 * number))
        for recorded in stream(*facts, run_id=UUID(int=number), tenant=tenant)
    ]


def found(page: ToolCallPage) -> list[tuple[int, str]]:
    return [(record.run_id.int, record.call_id) for record in page.tool_calls]


async def test_the_newest_comes_first_and_what_never_started_nor_ended_is_not_shown(
    pool: asyncpg.Pool, show: Show
) -> None:
    await show(in_one_log(run(1), run(2)))
    page = await list_tool_calls(pool, "acme")
    assert found(page) == [(2, "c"), (2, "a"), (1, "c"), (1, "a")]
    assert list(reversed(page.tool_calls)) == [*tool_calls_of(run(1)), *tool_calls_of(run(2))]


async def test_another_tenants_calls_are_not_there(pool: asyncpg.Pool, show: Show) -> None:
    """HTTP-2."""
    await show(in_one_log(run(1), run(2, tenant="zebra")))
    assert {number for number, _ in found(await list_tool_calls(pool, "acme"))} == {1}
    other = ToolCallFilter(run_id=RunId(UUID(int=2)))
    assert found(await list_tool_calls(pool, "acme", other)) == []


async def test_filters_leave_what_matches_all_of_them(pool: asyncpg.Pool, show: Show) -> None:
    await show(in_one_log(run(1), run(2)))
    for wanted, matching in (
        (ToolCallFilter(run_id=RunId(UUID(int=1))), [(1, "c"), (1, "a")]),
        (ToolCallFilter(tool="get_order"), [(2, "a"), (1, "a")]),
        (ToolCallFilter(tool="x" * 5000), [(2, "c"), (1, "c")]),
        (ToolCallFilter(state=ToolCallState.FAILED, until=minute(20)), [(1, "c")]),
        (ToolCallFilter(state=ToolCallState.REQUESTED), []),
        (ToolCallFilter(since=minute(20)), [(2, "c"), (2, "a")]),
    ):
        assert found(await list_tool_calls(pool, "acme", wanted)) == matching, wanted


async def test_parts_join_and_say_whether_there_is_more(pool: asyncpg.Pool, show: Show) -> None:
    await show(in_one_log(run(1), run(2)))
    parts = [await list_tool_calls(pool, "acme", skip=skip, take=3) for skip in (0, 3)]
    assert [found(part) for part in parts] == [[(2, "c"), (2, "a"), (1, "c")], [(1, "a")]]
    assert [part.more for part in parts] == [True, False]


async def test_a_page_is_read_from_an_index(pool: asyncpg.Pool) -> None:
    await pool.execute(MANY_CALLS)
    await pool.execute("ANALYZE tool_calls")
    for wanted, used in (
        ((None,) * 5, {"tool_calls_newest"}),
        ((None, "tool-7", None, None, None), {"tool_calls_by_tool"}),
        ((None, None, "unknown", None, None), {"tool_calls_not_returned"}),
        ((UUID(int=1), None, None, None, None), {"tool_calls_one_row", "Sort"}),
    ):
        assert await indexes_used(pool, "list_tool_calls", "acme", *wanted, 0, 51) == used


async def test_folding_finds_the_calls_of_its_runs_by_their_key(pool: asyncpg.Pool) -> None:
    await pool.execute(MANY_CALLS)
    await pool.execute("ANALYZE tool_calls")
    used = await indexes_used(pool, "last_step_tool_calls", [UUID(int=1), UUID(int=2)])
    assert used & {"tool_calls_one_row", "Seq Scan"} == {"tool_calls_one_row"}


MANY_CALLS = """
INSERT INTO tool_calls (run_id, ordinal, tenant_id, step, reply_sequence, call_id, tool, state, arguments,
                        truncated, safe_to_repeat, requested_at)
SELECT gen_random_uuid(), 1, 'acme', 1, 4, 'c', 'tool-' || n % 700,
       CASE WHEN n % 500 = 0 THEN 'unknown' WHEN n % 7 = 0 THEN 'requested' ELSE 'returned' END, '{}',
       false, false, timestamptz '2026-03-01' + n * interval '1 minute'
  FROM generate_series(1, 10000) AS n
"""
