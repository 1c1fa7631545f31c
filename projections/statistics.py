"""The `statistics` view: what happened, counted by model and by agent for each tenant and UTC day."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar
from uuid import UUID

import msgspec

from projections.base import DEEDS_OF_RUNS, Connection, Fact, of_kinds
from projections.rows import RESET_TIMEOUT_S, columns
from projections.sql import sql
from projections.tally import CallCounts, LiveRun, Tally


class Statistics:
    """Counters only ever grow. The rows of live runs are this view's memory and nobody else's to read."""

    name: ClassVar[str] = "statistics"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        deeds = of_kinds(page, DEEDS_OF_RUNS)
        if not deeds:
            return
        tally = Tally(await _live_runs(conn, {recorded.stream_id for recorded in deeds}))
        for recorded in deeds:
            tally.count(recorded)
        await _store(conn, tally)

    async def reset(self, conn: Connection) -> None:
        for table in ("calls", "reports", "agents", "live_runs"):
            await conn.execute(sql(f"delete_statistics_{table}"), timeout=RESET_TIMEOUT_S)


_live_run = msgspec.json.Decoder(LiveRun)


async def _live_runs(conn: Connection, run_ids: Iterable[UUID]) -> dict[UUID, LiveRun]:
    rows = await conn.fetch(sql("live_runs"), list(run_ids))
    return {row["run_id"]: _live_run.decode(row["state"]) for row in rows}


async def _store(conn: Connection, tally: Tally) -> None:
    if tally.calls:
        calls = [(*key, *_numbers(counts)) for key, counts in tally.calls.items()]
        await conn.execute(sql("add_to_statistics_calls"), *columns(calls))
    if tally.reports:
        reports = [(*key, *msgspec.structs.astuple(counts)) for key, counts in tally.reports.items()]
        await conn.execute(sql("add_to_statistics_reports"), *columns(reports))
    if tally.agents:
        agents = [(*key, *msgspec.structs.astuple(counts)) for key, counts in tally.agents.items()]
        await conn.execute(sql("add_to_statistics_agents"), *columns(agents))
    if noted := tally.noted():
        live = [(run_id, msgspec.json.encode(run).decode()) for run_id, run in noted.items()]
        await conn.execute(sql("upsert_live_runs"), *columns(live))
    if tally.ended:
        await conn.execute(sql("forget_live_runs"), list(tally.ended))


def _numbers(counts: CallCounts) -> tuple[Any, ...]:
    """The parameters of `add_to_statistics_calls` after the key, in its order."""
    return (
        counts.runs,
        counts.calls,
        counts.failed_calls,
        counts.unpriced_calls,
        *msgspec.structs.astuple(counts.usage),
        counts.cost,
    )
