"""Agents that other agents call: runs below runs."""

from app.main import Host
from domain import events as e
from domain.ids import DEFAULT_TENANT, RunId, session_stream
from domain.messages import UserMessage
from tests.hosts import OpenHost, follow, kinds, only, start
from tests.supervision.graphs import agent, asks, graph

TOGETHER = "[tool_loop]\nallow_concurrent_tool_calls = true"
LEAD = f"{asks('helper')}\nlast_tool_result = 'It says: {{result}}'"
PAIR = graph(agent("lead", agents=("helper",)) + agent("helper"), lead=LEAD, helper="text = 'nothing there'")


async def child_of(host: Host, run_id: RunId) -> RunId:
    """The first run below this one, once it is there."""
    seen = await follow(host, run_id, e.ChildRunStarted)
    return only(seen, e.ChildRunStarted)[0].run_id


async def test_an_agent_answers_another_in_a_run_of_its_own(host_of: OpenHost) -> None:
    host = await host_of(PAIR)
    run_id = await start(host, "lead", session_id="s")
    seen = await follow(host, run_id)
    assert [one for one in kinds(seen) if not one.startswith("Model")] == [
        "RunCreated", "RunStarted", "ToolInvoking", "ChildRunStarted", "ToolReturned", "RunCompleted",
    ]  # fmt: skip
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="It says: nothing there")]
    [noted] = only(seen, e.ChildRunStarted)
    [invoking] = only(seen, e.ToolInvoking)
    assert (noted.agent, noted.cause) == ("helper", invoking.call_id)
    created = only(await follow(host, noted.run_id), e.RunCreated)[0]
    assert created == e.RunCreated(
        tenant=DEFAULT_TENANT,
        kind=e.RunKind.AGENT,
        agent="helper",
        input=(UserMessage(content="look"),),
        session_id="s",
        root_run_id=run_id,
        parent_run_id=run_id,
        depth=1,
    )


async def test_a_child_takes_no_turn_in_its_roots_session(host_of: OpenHost) -> None:
    host = await host_of(PAIR)
    run_id = await start(host, "lead", session_id="s")
    await follow(host, run_id)
    recorded = await host.services.log.read_stream(session_stream(DEFAULT_TENANT, "s"))
    assert {one.event.run_id for one in recorded} == {run_id}  # type: ignore[attr-defined]
