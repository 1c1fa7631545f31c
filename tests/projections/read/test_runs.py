"""Lists of runs: one tenant's, filtered, newest first, in parts."""

from datetime import timedelta
from uuid import UUID

import asyncpg
import msgspec

from app.db.pool import open_pool
from domain.events import Event, RunCancelled, RunCompleted, RunCreated
from domain.ids import RunId
from domain.run import RunStatus
from projections.base import Fact
from projections.read.runs import COUNTED_AT_MOST, RunFilter, RunPage, list_runs
from projections.run_record import record_of
from projections.sql import sql
from tests.domain.facts import CREATED, STARTED, calling, replied, says
from tests.projections.read.conftest import Show
from tests.projections.read.plans import indexes_used
from tests.projections.story import NOON, in_one_log, minute, stream

STARTED_RUN: tuple[Event, ...] = (CREATED, STARTED)


def created(**changes: object) -> RunCreated:
    return msgspec.structs.replace(CREATED, **changes)


def run(number: int, *events: Event, tenant: str = "acme", at: int | None = None) -> list[Fact]:
    """A run whose first event is of minute `at`, by default its number."""
    facts = stream(*(events or STARTED_RUN), run_id=UUID(int=number), tenant=tenant)
    shift = timedelta(minutes=(number if at is None else at) - 1)
    return [msgspec.structs.replace(recorded, at=recorded.at + shift) for recorded in facts]


def numbers(page: RunPage) -> list[int]:
    return [record.id.int for record in page.runs]


async def test_the_newest_comes_first_and_each_is_the_fold_of_its_stream(
    pool: asyncpg.Pool, show: Show
) -> None:
    streams = [run(1), run(2, CREATED, STARTED, RunCompleted(answer="x")), run(3, CREATED)]
    await show(in_one_log(*streams))
    page = await list_runs(pool, "acme")
    assert page.runs == [record_of(facts) for facts in reversed(streams)]


async def test_runs_of_one_instant_have_an_order_too(pool: asyncpg.Pool, show: Show) -> None:
    await show(in_one_log(*(run(number, at=1) for number in (2, 3, 1))))
    assert numbers(await list_runs(pool, "acme")) == [3, 2, 1]


async def test_another_tenants_runs_are_not_there(pool: asyncpg.Pool, show: Show) -> None:
    """HTTP-2."""
    await show(in_one_log(run(1), run(2, tenant="zebra")))
    assert numbers(await list_runs(pool, "acme", with_total=True)) == [1]
    assert numbers(await list_runs(pool, "zebra")) == [2]
    page = await list_runs(pool, "nobody", RunFilter(agent="support"), with_total=True)
    assert (page.runs, page.more, page.total) == ([], False, 0)


FILTERS = [
    (RunFilter(status=RunStatus.CANCELLED), [2]),
    (RunFilter(status=RunStatus.RUNNING), [5, 4, 3]),
    (RunFilter(agent="sales"), [1]),
    (RunFilter(session_id="s1"), [4, 3]),
    (RunFilter(session_id="s1", agent="sales"), []),
    (RunFilter(session_id="nul\0"), [5]),
    (RunFilter(session_id="long" * 5000), [1]),
    (RunFilter(model_id="big"), [4]),
    (RunFilter(since=minute(3)), [5, 4, 3]),
    (RunFilter(until=minute(3)), [2, 1]),
    (RunFilter(since=minute(2), until=minute(3)), [2]),
    (RunFilter(roots=True), [5, 4, 2, 1]),
    (RunFilter(), [5, 4, 3, 2, 1]),
]


async def test_filters_leave_what_matches_all_of_them(pool: asyncpg.Pool, show: Show) -> None:
    big = msgspec.structs.replace(replied(1, says("Hi")), provider="backup", model="big")
    await show(
        in_one_log(
            run(1, created(agent="sales", session_id="long" * 5000)),
            run(2, CREATED, RunCancelled()),
            run(3, created(session_id="s1", parent_run_id=RunId(UUID(int=2)), depth=1), STARTED),
            run(4, created(session_id="s1"), STARTED, calling(1), big),
            run(5, created(session_id="nul\0"), STARTED),
        )
    )
    for wanted, found in FILTERS:
        page = await list_runs(pool, "acme", wanted, with_total=True)
        assert (numbers(page), page.total) == (found, len(found)), wanted


async def test_parts_join_without_gap_or_repeat_and_say_whether_there_is_more(
    pool: asyncpg.Pool, show: Show
) -> None:
    await show(in_one_log(*(run(number) for number in range(1, 6))))
    parts = [await list_runs(pool, "acme", skip=skip, take=2) for skip in (0, 2, 4, 6)]
    assert [numbers(part) for part in parts] == [[5, 4], [3, 2], [1], []]
    assert [part.more for part in parts] == [True, True, False, False]
    assert parts[0].total is None


async def test_skip_and_take_are_clamped(pool: asyncpg.Pool) -> None:
    """HTTP-2: 1 to 200."""
    for skip, take, clamped in ((-1, 0, (0, 1)), (3, 201, (3, 200)), (10**30, 7, (2**31 - 1, 7))):
        page = await list_runs(pool, "acme", skip=skip, take=take)
        assert (page.skip, page.take) == clamped


async def test_a_page_and_its_total_are_read_from_an_index_in_order(pool: asyncpg.Pool) -> None:
    await pool.execute(MANY_RUNS)
    await pool.execute("ANALYZE runs")
    for wanted, index in (
        ((None,) * 6, "runs_newest"),
        ((None, None, None, None, NOON, None), "runs_newest"),
        (("Failed", None, None, None, None, None), "runs_by_status"),
        ((None, "agent-7", None, None, None, None), "runs_by_agent"),
        ((None, None, "session-7", None, None, None), "runs_by_session"),
        ((None, None, None, "model-7", None, None), "runs_by_model"),
    ):
        assert await indexes_used(pool, "list_runs", "acme", *wanted, False, 0, 51) == {index}
        if index != "runs_newest":
            counted = await indexes_used(pool, "count_runs", "acme", *wanted, False, COUNTED_AT_MOST)
            assert "Seq Scan" not in counted


async def test_a_list_is_planned_for_its_filters_however_often_it_is_read(database: str) -> None:
    """On a young table Postgres would change to one plan for any filters, and keep it as the table grows."""
    async with await open_pool(database, min_size=1, max_size=1) as pool:
        await pool.execute(MANY_RUNS.replace("10000", "100"))
        await pool.execute("ANALYZE runs")
        for _ in range(8):
            await list_runs(pool, "acme", with_total=True)
        plans = await pool.fetchval(
            "SELECT array_agg(generic_plans) FROM pg_prepared_statements WHERE statement = ANY ($1)",
            [sql("list_runs"), sql("count_runs")],
        )
    assert plans == [0, 0]


MANY_RUNS = """
INSERT INTO runs (run_id, tenant_id, kind, agent, status, model_id, session_id, root_run_id, depth,
                  input_tokens, output_tokens, cached_input_tokens, reasoning_tokens, events, created_at)
SELECT md5(n::text)::uuid, 'acme', 'agent', 'agent-' || n % 700,
       CASE WHEN n % 500 = 0 THEN 'Failed' ELSE 'Completed' END, 'model-' || n % 700, 'session-' || n % 700,
       md5(n::text)::uuid, 0, 0, 0, 0, 0, 9, timestamptz '2026-03-01' + n * interval '1 minute'
  FROM generate_series(1, 10000) AS n
"""
