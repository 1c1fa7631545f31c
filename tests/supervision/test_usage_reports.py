"""What tools say they have spent: heard from any thread, in order, and on record with the run (BUDGET-3)."""

import asyncio
import threading
from decimal import Decimal

import pytest

from domain import events as e
from domain.run import Run
from tests.hosts import OpenHost, follow, kinds, only, start
from tests.supervision.graphs import agent, calls, graph
from tracon import ToolContext, tool

SETTINGS = graph(agent("a", tools=("work",)), a=f"{calls('work')}\ntext = 'done'")


async def test_what_a_thread_reports_is_on_record_before_what_it_returns(host_of: OpenHost) -> None:
    """BUDGET-3: at once, from a plain function's thread and from threads of its own."""

    @tool(name="work", effect="write")
    def work(context: ToolContext) -> str:
        """Work."""
        helper = threading.Thread(target=context.report_usage, args=("0.25", "USD", "speech"))
        helper.start()
        helper.join()
        context.report_usage("0.50", "USD", "render")
        return "worked"

    host = await host_of(SETTINGS, tools=(work,))
    seen = await follow(host, await start(host, "a"))
    [invoking] = only(seen, e.ToolInvoking)
    assert only(seen, e.UsageReported) == [
        e.UsageReported(
            cause=invoking.call_id, kind=kind, amount=Decimal(amount), currency="USD", counted=True
        )
        for kind, amount in (("speech", "0.25"), ("render", "0.50"))
    ]
    told = [one for one in kinds(seen) if one.startswith(("Tool", "Usage"))]
    assert told == ["ToolInvoking", "UsageReported", "UsageReported", "ToolReturned"]


async def test_what_a_task_reports_counts_at_that_moment(host_of: OpenHost) -> None:
    """BUDGET-3: on the event loop there is nothing to wait for."""
    counted: list[Decimal] = []

    @tool(name="work", effect="write")
    async def work(context: ToolContext) -> str:
        """Work."""
        context.report_usage("0.25", "USD", "speech")
        counted.append(host.bench.trees.tree_of(Run(id=context.run_id)).budget.spent.charge.cost)
        return "worked"

    host = await host_of(SETTINGS, tools=(work,))
    await follow(host, await start(host, "a"))
    assert counted == [Decimal("0.25")]


async def test_a_body_that_was_left_behind_changes_no_closed_run(
    host_of: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    """A closed run is never rewritten: what is reported too late is logged."""
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    @tool(name="work", effect="write")
    def work(context: ToolContext) -> str:
        """Work."""
        begun.set()
        go_on.wait(30)
        context.report_usage("0.25", "USD", "speech")
        over.set()
        return "worked"

    host = await host_of(f"[cancellation]\ngrace = '10ms'\n{SETTINGS}", tools=(work,))
    run_id = await start(host, "a")
    await asyncio.to_thread(begun.wait, 30)
    await host.services.runs.cancel("default", run_id)
    ended = await follow(host, run_id)
    go_on.set()
    await asyncio.to_thread(over.wait, 30)
    async with asyncio.timeout(10):
        while "usage.not_recorded" not in [record.message for record in caplog.records]:
            await asyncio.sleep(0.01)
    assert len(await host.services.runs.load("default", run_id)) == len(ended)
