"""The views of any history: the same wherever pages end, and the same as what the pure folds say."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal

import asyncpg
from hypothesis import HealthCheck, given, settings

from domain import events as e
from domain.events.side import SideCallFailed, SideCallReplied
from domain.failure import FailureKind
from projections.base import Connection, Fact
from projections.catalog import PROJECTIONS
from projections.run_record import RunRecord, record_of
from projections.runs import Runs
from projections.runs import record_from as run_from
from projections.statistics import Statistics
from projections.tool_calls import ToolCallRecord, ToolCallState, tool_calls_of
from projections.tools import Tools
from projections.tools import record_from as tool_call_from
from tests.domain import facts as tools
from tests.projections.histories import histories, paged_histories
from tests.projections.story import stream
from tests.projections.tables import TABLES, folded

# Every example begins and ends with the same empty tables, so it does not matter that they share a database.
on_one_database = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@on_one_database
@given(paged_histories())
async def test_where_pages_end_makes_no_difference(
    pool: asyncpg.Pool, history: tuple[list[Fact], list[list[Fact]]]
) -> None:
    """EVENT-6: a rebuilt view has the rows of one that followed the log bit by bit."""
    facts, pages = history
    async with undone(pool) as conn:
        for projection in PROJECTIONS:
            at_once = await folded(conn, projection, facts)
            assert await folded(conn, projection, *pages) == at_once


@on_one_database
@given(histories())
async def test_a_row_of_runs_equals_the_fold_of_the_runs_stream(
    pool: asyncpg.Pool, facts: list[Fact]
) -> None:
    async with undone(pool) as conn:
        await folded(conn, Runs(), facts)
        rows = [run_from(row) for row in await conn.fetch("SELECT * FROM runs ORDER BY run_id")]
    assert rows == records_of(facts)


@on_one_database
@given(histories())
async def test_the_rows_of_tools_equal_the_fold_of_their_runs_stream(
    pool: asyncpg.Pool, facts: list[Fact]
) -> None:
    async with undone(pool) as conn:
        await folded(conn, Tools(), facts)
        rows = await conn.fetch(
            "SELECT * FROM tool_calls WHERE state <> 'requested' ORDER BY run_id, ordinal"
        )
    assert [tool_call_from(row) for row in rows] == calls_of(facts)


async def test_an_id_that_a_later_step_uses_again_is_another_row(pool: asyncpg.Pool) -> None:
    call = tools.call("c1")
    first = (*tools.asked_for(call), tools.invoking(call), tools.returned(call, "one"))
    second = (tools.calling(2), tools.replied(2, tools.says("", call)))
    facts = stream(*tools.OPENED, *first, *second, tools.invoking(call), tools.returned(call, "two"))
    async with undone(pool) as conn:
        await folded(conn, Tools(), facts[:8], facts[8:])
        rows = await conn.fetch("SELECT ordinal, output FROM tool_calls ORDER BY ordinal")
    assert [tuple(row) for row in rows] == [(1, "one"), (2, "two")]


@on_one_database
@given(histories())
async def test_statistics_count_what_the_records_of_the_runs_say(
    pool: asyncpg.Pool, facts: list[Fact]
) -> None:
    records, events = records_of(facts), [recorded.event for recorded in facts]
    async with undone(pool) as conn:
        tables = await folded(conn, Statistics(), facts)
        (agents,) = await conn.fetch(
            "SELECT sum(created), sum(started), sum(completed), sum(failed), sum(cancelled), sum(tool_calls)"
            "  FROM statistics_agents"
        )
        (calls,) = await conn.fetch(
            "SELECT sum(calls), sum(failed_calls), sum(unpriced_calls), sum(runs), sum(output_tokens),"
            "       sum(cost) FROM statistics_calls"
        )
        (reports,) = await conn.fetch(
            "SELECT sum(reports), sum(unknown), sum(amount), sum(counted) FROM statistics_reports"
        )
    statuses = Counter(record.status.value for record in records)
    ended = {record.id for record in records if record.status.ended}
    settled = [c for c in calls_of(facts) if c.run_id in ended or c.state in RESULTS]
    assert [number or 0 for number in agents] == [
        len(records),
        sum(isinstance(event, e.RunStarted) for event in events),
        statuses["Completed"],
        statuses["Failed"],
        statuses["Cancelled"],
        len(settled),
    ]
    replies = [event for event in events if isinstance(event, REPLIES)]
    assert [number or 0 for number in calls] == [
        len(replies),
        sum(
            isinstance(event, e.ModelCallFailed | SideCallFailed)
            and event.failure.kind is not FailureKind.CIRCUIT_OPEN
            for event in events
        ),
        sum(reply.cost is None for reply in replies),
        len({(r.stream_id, r.event.model) for r in facts if isinstance(r.event, REPLIES)}),
        sum(record.usage.output_tokens for record in records),
        sum((reply.cost or Decimal(0) for reply in replies), Decimal(0)),
    ]
    told = [event for event in events if isinstance(event, e.UsageReported)]
    amounts = [(one.amount, one.counted) for one in told if one.amount is not None]
    assert [number or 0 for number in reports] == [
        len(told),
        len(told) - len(amounts),
        sum((amount for amount, _ in amounts), Decimal(0)),
        sum((amount for amount, counted in amounts if counted), Decimal(0)),
    ]
    assert sum((Decimal(record.reported_cost) for record in records), Decimal(0)) == (reports[3] or 0)
    assert len(tables["statistics_live_runs"]) == len(records) - len(ended)


REPLIES = e.ModelReplied | SideCallReplied
"""Calls besides the agent's own count for their model like any (CHAIN-13)."""
RESULTS = (ToolCallState.RETURNED, ToolCallState.FAILED)


def records_of(facts: list[Fact]) -> list[RunRecord]:
    """By run id."""
    return [record for facts_of_one in streams(facts) if (record := record_of(facts_of_one))]


def calls_of(facts: list[Fact]) -> list[ToolCallRecord]:
    """By run id, then in the order asked for."""
    return [call for facts_of_one in streams(facts) for call in tool_calls_of(facts_of_one)]


def streams(facts: list[Fact]) -> list[list[Fact]]:
    ids = sorted({recorded.stream_id for recorded in facts})
    return [[recorded for recorded in facts if recorded.stream_id == stream_id] for stream_id in ids]


@asynccontextmanager
async def undone(pool: asyncpg.Pool) -> AsyncIterator[Connection]:
    """A connection whose changes are rolled back in the end."""
    async with pool.acquire() as conn:
        transaction = conn.transaction()
        await transaction.start()
        try:
            yield conn
        finally:
            await transaction.rollback()


def test_every_projection_is_compared() -> None:
    assert {projection.name for projection in PROJECTIONS} == TABLES.keys()
