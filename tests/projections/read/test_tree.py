"""A tree of runs, as its readers see it."""

from decimal import Decimal
from uuid import UUID

import asyncpg
import msgspec

from domain.events import Event, RunCompleted, UsageReported
from domain.ids import RunId
from domain.messages import Usage
from projections.base import Fact
from projections.read.tree import TreeTotals, read_tree
from tests.domain.facts import CREATED, STARTED, replied, says
from tests.projections.read.conftest import Show
from tests.projections.read.plans import indexes_used
from tests.projections.story import in_one_log, stream

ROOT = RunId(UUID(int=1))


def run(
    number: int, *events: Event, under: int | None = None, depth: int = 0, tenant: str = "acme"
) -> list[Fact]:
    created = CREATED
    if under is not None:
        parent = RunId(UUID(int=under))
        created = msgspec.structs.replace(CREATED, root_run_id=ROOT, parent_run_id=parent, depth=depth)
    return stream(created, STARTED, *events, run_id=UUID(int=number), tenant=tenant)


def answer(tokens: int, cost: str | None) -> Event:
    amount = None if cost is None else Decimal(cost)
    return replied(1, says("Hi"), usage=Usage(output_tokens=tokens), cost=amount)


USED = UsageReported(cause="c", kind="render", amount=Decimal("0.5"), currency="USD", counted=True)
TREE = in_one_log(
    run(1, answer(1, "0.1"), USED),
    run(3, answer(2, "0.2"), RunCompleted(answer="Hi"), under=1, depth=1),
    run(2, answer(4, None), RunCompleted(answer="Hi"), under=3, depth=2),
    run(4, under=1, depth=1),
    run(9, answer(64, "9")),
)


async def test_a_tree_is_told_level_by_level_with_all_that_it_has_used(
    pool: asyncpg.Pool, show: Show
) -> None:
    await show(TREE)
    tree = await read_tree(pool, "acme", ROOT, skip=0, take=200)
    assert [(one.id.int, one.depth) for one in tree.runs] == [(1, 0), (3, 1), (4, 1), (2, 2)]
    assert tree.totals == TreeTotals(
        runs=4,
        child_runs=3,
        live=2,
        usage=Usage(output_tokens=7),
        costs={"USD": "0.3"},
        unpriced_runs=1,
        reported_cost="0.5",
    )


async def test_a_part_of_a_tree_has_the_totals_of_the_whole(pool: asyncpg.Pool, show: Show) -> None:
    """HTTP-2"""
    await show(TREE)
    tree = await read_tree(pool, "acme", ROOT, skip=1, take=2)
    assert [one.id.int for one in tree.runs] == [3, 4]
    assert (tree.more, tree.totals.runs, (tree.skip, tree.take)) == (True, 4, (1, 2))
    assert not (await read_tree(pool, "acme", ROOT, skip=3, take=2)).more


async def test_a_tree_of_another_tenant_is_empty(pool: asyncpg.Pool, show: Show) -> None:
    """HTTP-2"""
    await show(TREE)
    tree = await read_tree(pool, "zebra", ROOT, skip=0, take=200)
    assert (tree.runs, tree.totals) == ([], TreeTotals())


async def test_what_is_below_a_root_is_found_by_an_index(pool: asyncpg.Pool) -> None:
    """A tenant's other runs cost nothing, however many there are."""
    await pool.execute("""
        INSERT INTO runs (run_id, tenant_id, kind, agent, status, root_run_id, parent_run_id, depth,
            input_tokens, output_tokens, cached_input_tokens, reasoning_tokens, events, created_at)
        SELECT gen_random_uuid(), 'acme', 'agent', 'a', 'Completed', md5((n / 3)::text)::uuid,
            CASE WHEN n % 3 = 0 THEN NULL ELSE md5((n / 3)::text)::uuid END, n % 3, 0, 0, 0, 0, 1, now()
          FROM generate_series(1, 20000) AS n
    """)
    await pool.execute("ANALYZE runs")
    for statement, window in (("runs_of_tree", (0, 200)), ("totals_of_tree", ())):
        used = await indexes_used(pool, statement, "acme", ROOT, *window)
        assert "runs_below" in used
        assert "Seq Scan" not in used
