"""Statistics by model, by agent and by status, for a range of days."""

from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

import asyncpg
import msgspec

from domain.events import (
    Event,
    ModelReplied,
    RunAwaitingApproval,
    RunAwaitingInput,
    RunCancelled,
    RunCompleted,
    RunFailed,
    UsageReported,
)
from domain.events.side import SideCallFailed, SideCallReplied, SidePurpose
from domain.failure import ErrorClass, FailureClass
from domain.messages import Usage
from domain.run import RunStatus
from projections.base import Fact
from projections.read.statistics import AgentStatistics, ModelStatistics, read_statistics
from tests.domain.facts import (
    CREATED,
    OPENED,
    OVERLOADED,
    asked_for,
    call,
    calling,
    failed,
    invoking,
    replied,
    returned,
    says,
    tool_failed,
)
from tests.projections.read.conftest import Show
from tests.projections.read.plans import indexes_used
from tests.projections.story import in_one_log, stream

A, B, C = call("a"), call("b"), call("c")
FAILURE = RunFailed(error="gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
USAGE = Usage(input_tokens=10, output_tokens=5, cached_input_tokens=4, reasoning_tokens=3)


def run(number: int, *events: Event, tenant: str = "acme", day: int = 0) -> list[Fact]:
    """A run of 1 March and `day` days."""
    facts = stream(*events, run_id=UUID(int=number), tenant=tenant)
    return [msgspec.structs.replace(fact, at=fact.at + timedelta(days=day)) for fact in facts]


def answer(step: int, cost: str | None, currency: str = "USD", model: str = "small") -> ModelReplied:
    amount = None if cost is None else Decimal(cost)
    reply = replied(step, says("Hi"), usage=USAGE, cost=amount)
    return msgspec.structs.replace(reply, currency=currency, model=model)


async def test_calls_are_grouped_by_the_model_that_answered(pool: asyncpg.Pool, show: Show) -> None:
    """CHAIN-12: a failed call counts for the link that failed, cost and tokens for the one that answered."""
    await show(
        in_one_log(
            run(1, *OPENED, calling(1), failed(1), answer(1, "0.10", model="big"), answer(2, "0.20")),
            run(2, *OPENED, answer(1, "0.30"), answer(2, "0.3", "EUR"), answer(3, None)),
        )
    )
    report = await read_statistics(pool, "acme")
    assert report.by_model == [
        ModelStatistics(
            provider="primary", model_id="big", runs=1, calls=1, usage=USAGE, costs={"USD": "0.1"}
        ),
        ModelStatistics(
            provider="primary",
            model_id="small",
            runs=2,
            calls=4,
            failed_calls=1,
            usage=USAGE + USAGE + USAGE + USAGE,
            costs={"EUR": "0.3", "USD": "0.5"},
            unpriced_calls=1,
        ),
    ]


async def test_calls_besides_the_agents_own_are_grouped_by_the_model_that_answered(
    pool: asyncpg.Pool, show: Show
) -> None:
    """CHAIN-13: a summary or a verdict is priced at the link that gave it, and counts for it."""
    down = SideCallFailed(
        purpose=SidePurpose.JUDGE,
        attempt=1,
        provider="first",
        model="tiny",
        failure_class=FailureClass.UNAVAILABLE,
        failure=OVERLOADED,
    )
    verdict = SideCallReplied(
        purpose=SidePurpose.JUDGE,
        attempt=2,
        provider="backup",
        model="tiny",
        usage=USAGE,
        cost=Decimal("0.05"),
    )
    await show(in_one_log(run(1, *OPENED, answer(1, "0.10"), down, verdict)))
    report = await read_statistics(pool, "acme")
    assert [(one.provider, one.calls, one.failed_calls, one.costs) for one in report.by_model] == [
        ("backup", 1, 0, {"USD": "0.05"}),
        ("first", 0, 1, {}),
        ("primary", 1, 0, {"USD": "0.1"}),
    ]


async def test_agents_have_their_runs_their_calls_and_their_tools(pool: asyncpg.Pool, show: Show) -> None:
    sales = msgspec.structs.replace(CREATED, agent="sales")
    tools = (invoking(A), returned(A, "ok"), invoking(B), tool_failed(C, "no such tool"), FAILURE)
    await show(
        in_one_log(
            run(1, *OPENED, answer(1, "1"), RunCompleted(answer="Hi")),
            run(2, *OPENED, *asked_for(A, B, C), *tools),
            run(3, CREATED, RunCancelled()),
            run(4, sales),
        )
    )
    report = await read_statistics(pool, "acme")
    assert report.by_agent == [
        AgentStatistics(agent="sales", runs=1),
        AgentStatistics(
            agent="support",
            runs=3,
            started=2,
            completed=1,
            failed=1,
            cancelled=1,
            calls=2,
            usage=USAGE,
            costs={"USD": "1"},
            unpriced_calls=1,
            tool_calls=3,
            failed_tool_calls=1,
            unknown_tool_calls=1,
        ),
    ]


async def test_statuses_are_those_that_runs_are_in_now(pool: asyncpg.Pool, show: Show) -> None:
    await show(
        in_one_log(
            run(1, CREATED),
            run(2, *OPENED),
            run(3, *OPENED, RunCompleted(answer="Hi")),
            run(4, CREATED, FAILURE),
            run(5, CREATED, RunCancelled()),
            run(6, *OPENED, RunCancelled()),
            run(7, *OPENED, *asked_for(A), RunAwaitingApproval(calls=())),
            run(8, *OPENED, RunAwaitingInput(requests=())),
        )
    )
    assert (await read_statistics(pool, "acme")).by_status == {
        RunStatus.QUEUED: 1,
        RunStatus.RUNNING: 1,
        RunStatus.AWAITING_APPROVAL: 1,
        RunStatus.AWAITING_INPUT: 1,
        RunStatus.COMPLETED: 1,
        RunStatus.FAILED: 1,
        RunStatus.CANCELLED: 2,
    }


async def test_a_range_has_the_runs_created_in_it_and_the_calls_that_came_back_in_it(
    pool: asyncpg.Pool, show: Show
) -> None:
    """The first run is created on 1 March and goes on two days later."""
    late = run(1, *OPENED, answer(1, "1"), RunCompleted(answer="Hi"))
    late[2:] = [msgspec.structs.replace(fact, at=fact.at + timedelta(days=2)) for fact in late[2:]]
    await show(in_one_log(late, run(2, *OPENED, answer(1, "10"), day=1)))

    async def of(since: date | None, until: date | None) -> tuple[int, int, dict[str, str]]:
        report = await read_statistics(pool, "acme", since, until)
        (agent,) = report.by_agent
        assert sum(report.by_status.values()) == agent.runs
        return agent.runs, agent.completed, agent.costs

    first, second, third = (date(2026, 3, day) for day in (1, 2, 3))
    assert await of(None, None) == (2, 1, {"USD": "11"})
    assert await of(first, second) == (1, 1, {})
    assert await of(second, third) == (1, 0, {"USD": "10"})
    assert await of(third, None) == (0, 0, {"USD": "1"})
    assert (await read_statistics(pool, "acme", until=first)).by_agent == []


async def test_another_tenants_numbers_are_not_in_it(pool: asyncpg.Pool, show: Show) -> None:
    """HTTP-2."""
    await show(in_one_log(run(1, *OPENED, answer(1, "1")), run(2, *OPENED, answer(1, "5"), tenant="zebra")))
    report = await read_statistics(pool, "zebra")
    assert [(model.calls, model.costs) for model in report.by_model] == [(1, {"USD": "5"})]
    assert report.by_status[RunStatus.RUNNING] == 1
    nobody = await read_statistics(pool, "nobody")
    assert (nobody.by_model, nobody.by_agent, set(nobody.by_status.values())) == ([], [], {0})


async def test_a_range_is_read_from_an_index(pool: asyncpg.Pool) -> None:
    await pool.execute(MANY_DAYS)
    await pool.execute("ANALYZE statistics_calls")
    used = await indexes_used(pool, "statistics_of_calls", "acme", date(2026, 3, 1), date(2026, 3, 8))
    assert "statistics_calls_one_row" in used
    assert "Seq Scan" not in used


MANY_DAYS = """
INSERT INTO statistics_calls
SELECT 'acme', date '2026-01-01' + n % 365, 'agent-' || n, 'primary', 'small', 'USD',
       1, 1, 0, 0, 1, 1, 0, 0, 0.5
  FROM generate_series(1, 10000) AS n
"""


def reported(amount: str | None, currency: str | None, *, counted: bool = False) -> UsageReported:
    exact = None if amount is None else Decimal(amount)
    return UsageReported(cause="a", kind="render", amount=exact, currency=currency, counted=counted)


async def test_what_tools_report_is_grouped_by_kind_and_currency(pool: asyncpg.Pool, show: Show) -> None:
    """BUDGET-3, BUDGET-8: what is not counted is there too, apart."""
    reports = (reported("0.25", "USD", counted=True), reported("0.5", "USD", counted=True))
    more = (reported(None, "USD"), reported("3", "EUR"), reported("7", None))
    await show(in_one_log(run(1, *OPENED, *reports), run(2, *OPENED, *more)))
    found = (await read_statistics(pool, "acme")).reported
    assert [(one.currency, one.reports, one.unknown, one.amount, one.counted) for one in found] == [
        ("", 1, 0, "7", "0"),
        ("EUR", 1, 0, "3", "0"),
        ("USD", 3, 1, "0.75", "0.75"),
    ]
    assert (await read_statistics(pool, "zebra")).reported == []
