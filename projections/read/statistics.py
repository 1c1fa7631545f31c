"""What a tenant's runs did and cost, by model, by agent and by status."""

from collections.abc import Callable, Hashable, Iterable
from datetime import date
from typing import Any, TypeVar

import asyncpg
import msgspec

from domain.messages import Usage
from domain.run import RunStatus
from projections.read.snapshot import snapshot
from projections.sql import sql
from projections.values import plain, storable


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """Model calls and what they used."""

    calls: int = 0
    """Calls that were answered; failed ones are apart."""
    failed_calls: int = 0
    usage: Usage = Usage()
    costs: dict[str, str] = {}
    """What is known of the cost: an exact decimal for each currency."""
    unpriced_calls: int = 0
    """Answered calls that `costs` leaves out, because their price is unknown."""


class ModelStatistics(Spending, frozen=True, kw_only=True):
    provider: str
    model_id: str
    runs: int
    """Runs in which it answered; one in which two models answered counts for both."""


class AgentStatistics(Spending, frozen=True, kw_only=True):
    agent: str
    runs: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    awaiting_approval: int = 0
    awaiting_input: int = 0
    tool_calls: int = 0
    failed_tool_calls: int = 0
    unknown_tool_calls: int = 0


class ReportStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's tools and nodes said they have spent beyond tokens."""

    agent: str
    kind: str
    currency: str
    """Empty where the reports named none."""
    reports: int
    unknown: int
    """Reports without an amount."""
    amount: str
    counted: str
    """What of it counts as cost, for budgets and quotas."""


class StatisticsReport(msgspec.Struct, frozen=True, kw_only=True):
    """Runs count on the UTC day they were created, calls and tool calls on the day they ended."""

    since: date | None
    until: date | None
    by_model: list[ModelStatistics]
    by_agent: list[AgentStatistics]
    by_status: dict[RunStatus, int]
    reported: list[ReportStatistics]


async def read_statistics(
    pool: asyncpg.Pool, tenant: str, since: date | None = None, until: date | None = None
) -> StatisticsReport:
    """From the day `since` on and before the day `until`; None is no limit. Raises Unavailable."""
    arguments = (storable(tenant), since, until)
    async with snapshot(pool) as conn:
        calls = await conn.fetch(sql("statistics_of_calls"), *arguments)
        agents = await conn.fetch(sql("statistics_of_agents"), *arguments)
        reports = await conn.fetch(sql("statistics_of_reports"), *arguments)
    return StatisticsReport(
        since=since,
        until=until,
        by_model=_by_model(row for row in calls if row["agent"] is None),
        by_agent=_by_agent([row for row in calls if row["agent"] is not None], agents),
        by_status=_by_status(agents),
        reported=[_reported(row) for row in reports],
    )


Rows = list[asyncpg.Record]
Key = TypeVar("Key", bound=Hashable)


def _reported(row: asyncpg.Record) -> ReportStatistics:
    return ReportStatistics(
        agent=row["agent"],
        kind=row["kind"],
        currency=row["currency"],
        reports=row["reports"],
        unknown=row["unknown"],
        amount=plain(row["amount"]),
        counted=plain(row["counted"]),
    )


def _by_model(calls: Iterable[asyncpg.Record]) -> list[ModelStatistics]:
    groups = _grouped(calls, lambda row: (row["provider"], row["model_id"]))
    return [
        ModelStatistics(
            provider=provider,
            model_id=model_id,
            runs=sum(row["runs"] for row in rows),
            **msgspec.structs.asdict(_spending(rows)),
        )
        for (provider, model_id), rows in groups.items()
    ]


def _by_agent(calls: Rows, agents: Rows) -> list[AgentStatistics]:
    spending = _grouped(calls, lambda row: row["agent"])
    counts = {row["agent"]: row for row in agents}
    return [
        AgentStatistics(
            agent=agent,
            **_run_counts(counts.get(agent)),
            **msgspec.structs.asdict(_spending(spending.get(agent, []))),
        )
        for agent in sorted(spending.keys() | counts.keys())
    ]


def _run_counts(row: asyncpg.Record | None) -> dict[str, Any]:
    if row is None:
        return {}
    same = ("started", *_ENDS)
    tools = ("tool_calls", "failed_tool_calls", "unknown_tool_calls")
    return {"runs": row["created"], **{name: row[name] for name in (*same, *tools)}}


_ENDS = ("completed", "failed", "cancelled", "awaiting_approval", "awaiting_input")


def _by_status(agents: Rows) -> dict[RunStatus, int]:
    def total(name: str) -> int:
        return sum(row[name] for row in agents)

    ended = sum(map(total, _ENDS))
    return dict.fromkeys(RunStatus, 0) | {
        RunStatus.QUEUED: total("created") - total("started") - total("ended_unstarted"),
        RunStatus.RUNNING: total("started") + total("ended_unstarted") - ended,
        RunStatus.COMPLETED: total("completed"),
        RunStatus.FAILED: total("failed"),
        RunStatus.CANCELLED: total("cancelled"),
        RunStatus.AWAITING_APPROVAL: total("awaiting_approval"),
        RunStatus.AWAITING_INPUT: total("awaiting_input"),
    }


def _spending(rows: Rows) -> Spending:
    """Rows of one group, one for each currency; those without a price are under ''."""
    return Spending(
        calls=sum(row["calls"] for row in rows),
        failed_calls=sum(row["failed_calls"] for row in rows),
        usage=Usage(**{name: sum(row[name] for row in rows) for name in Usage.__struct_fields__}),
        costs={row["currency"]: plain(row["cost"]) for row in rows if row["currency"]},
        unpriced_calls=sum(row["unpriced_calls"] for row in rows),
    )


def _grouped(rows: Iterable[asyncpg.Record], key: Callable[[asyncpg.Record], Key]) -> dict[Key, Rows]:
    groups: dict[Key, Rows] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
