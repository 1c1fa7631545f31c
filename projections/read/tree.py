"""A tree of runs: its root and everything below it, and what all of that has used."""

import asyncpg
import msgspec

from domain.ids import RunId
from domain.messages import Usage
from projections.read.snapshot import snapshot
from projections.read.window import Window
from projections.run_record import RunRecord
from projections.runs import record_from
from projections.sql import sql
from projections.values import plain, storable


class TreeTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs of a tree have used, not only those of the part that is shown."""

    runs: int = 0
    child_runs: int = 0
    live: int = 0
    """Runs that have not ended."""
    usage: Usage = Usage()
    costs: dict[str, str] = {}
    """What is known of the cost of model calls: an exact decimal for each currency."""
    unpriced_runs: int = 0
    """Runs that `costs` leaves out, because the price of one of their calls is unknown."""
    reported_cost: str = "0"
    """What tools and nodes reported beyond tokens, as far as it counts as cost."""


class RunTree(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a tree, level by level. `parent_run_id` says where each run belongs."""

    root_run_id: RunId
    totals: TreeTotals
    runs: list[RunRecord]
    skip: int
    take: int
    more: bool
    """Whether the tree goes on after this part."""


async def read_tree(pool: asyncpg.Pool, tenant: str, root: RunId, *, skip: int, take: int) -> RunTree:
    """One tenant's tree, as the view of runs has it. Raises Unavailable."""
    window, arguments = Window.clamped(skip, take), (storable(tenant), root)
    async with snapshot(pool) as conn:
        rows = await conn.fetch(sql("runs_of_tree"), *arguments, window.skip, window.take + 1)
        totals = await conn.fetch(sql("totals_of_tree"), *arguments)
    return RunTree(
        root_run_id=root,
        totals=_totals(totals),
        runs=[record_from(row) for row in rows[: window.take]],
        skip=window.skip,
        take=window.take,
        more=len(rows) > window.take,
    )


def _totals(rows: list[asyncpg.Record]) -> TreeTotals:
    runs = sum(row["runs"] for row in rows)
    return TreeTotals(
        runs=runs,
        child_runs=max(0, runs - 1),
        live=sum(row["live"] for row in rows),
        usage=Usage(**{name: sum(row[name] for row in rows) for name in Usage.__struct_fields__}),
        costs={row["currency"]: plain(row["cost"]) for row in rows if row["currency"]},
        unpriced_runs=sum(row["unpriced"] for row in rows),
        reported_cost=plain(sum(row["reported_cost"] for row in rows)),
    )
