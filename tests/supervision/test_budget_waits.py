"""Branches of a tree near its limit: one waits for another, and is refused only for what was spent."""

import asyncio

from app.main import Host
from domain import events as e
from domain.ids import RunId, run_stream
from tests.hosts import OpenHost, follow, kinds, only, start
from tests.supervision.graphs import agent, asks_all

TOGETHER = "[tool_loop]\nallow_concurrent_tool_calls = true\n"


def branches(limit: int, spends: int, more: str = "") -> str:
    """A lead that asks two helpers together; each may write 900 tokens, and writes so many."""
    return (
        f"{TOGETHER}[agent_graph]\nmax_total_tokens = {limit}\n"
        '[providers.script]\ntype = "scripted"\n'
        f"[[providers.script.models.lead.default]]\n{asks_all('helper', 'a', 'b')}\n"
        "usage = { input_tokens = 0 }\n"
        "[[providers.script.models.lead.default]]\ntext = 'done'\nusage = { input_tokens = 0 }\n"
        f"[[providers.script.models.helper.default]]\ntext = 'well'\n{more}\n"
        f"usage = {{ output_tokens = {spends} }}\n"
        + agent("lead", agents=("helper",), more="options = { max_output_tokens = 1 }")
        + agent("helper", more="options = { max_output_tokens = 900 }")
    )


async def events_of(host: Host, run_id: RunId) -> list[e.Recorded[e.Event]]:
    return await host.services.log.read_stream(run_stream(run_id))


async def test_a_step_without_room_waits_and_is_not_refused(host_of: OpenHost) -> None:
    """BUDGET-2: what is only expected refuses nobody."""
    host = await host_of(branches(1000, spends=400))
    seen = await follow(host, await start(host, "lead"))
    assert kinds(seen)[-1] == "RunCompleted"
    assert [one.output for one in only(seen, e.ToolReturned)] == ["well", "well"]


async def test_a_step_that_has_waited_is_refused_once_the_budget_is_really_spent(host_of: OpenHost) -> None:
    """BUDGET-2: the other branch has used up what was left."""
    host = await host_of(branches(800, spends=900))
    seen = await follow(host, await start(host, "lead"))
    [failed] = only(seen, e.RunFailed)
    assert "has spent 900 of 800 tokens" in failed.error, "one step was beyond the limit, and not two"
    assert len(only(seen, e.ToolReturned)) == len(only(seen, e.ToolFailed)) == 1


async def branch_at_work(host: Host, children: list[RunId]) -> RunId:
    """The first of these runs whose model call is on record."""
    while True:
        for child in children:
            if "ModelCallStarted" in kinds(await events_of(host, child)):
                return child


async def test_whoever_waits_is_woken_when_the_other_is_cancelled(host_of: OpenHost) -> None:
    """What a step holds goes with it."""
    host = await host_of(branches(800, spends=10, more="first_delay = 60"))
    run_id = await start(host, "lead")
    async with asyncio.timeout(20):
        while host.services.metrics.registry.get_sample_value("tracon_budget_waiting") != 1:
            await asyncio.sleep(0.01)
        children = [one.run_id for one in only(await events_of(host, run_id), e.ChildRunStarted)]
        calling = await branch_at_work(host, children)
    [waiting] = set(children) - {calling}
    assert "ModelCallStarted" not in kinds(await events_of(host, waiting))
    await host.services.runs.cancel("default", calling)
    await follow(host, waiting, e.ModelCallStarted)
    await host.services.runs.cancel("default", run_id)
    assert kinds(await follow(host, run_id))[-1] == "RunCancelled"
