"""Lists of runs, one run, and what is asked about it."""

from uuid import uuid4

from app.store.event_log import Change
from domain.events import RunCreated, RunKind
from domain.ids import RunId, Version, run_stream
from domain.messages import UserMessage
from tests.http.client import STREAM, Client
from tests.http.conftest import Hosts


async def test_runs_are_listed_newest_first_and_by_what_is_asked_for(host: Client) -> None:
    """HTTP-5"""
    first = (await host.run("echo", session_id="s")).body["id"]
    second = (await host.run("story")).body["id"]
    third = (await host.run("failing")).body["run"]["id"]
    await host.views_show("runs")

    async def listed(query: str) -> list[str]:
        return [run["id"] for run in (await host.get(f"/tracon/api/runs{query}")).body["runs"]]

    assert await listed("") == [third, second, first]
    assert await listed("?status=Failed") == [third]
    assert await listed("?status=Completed&agent=echo") == [first]
    assert await listed("?session_id=s") == [first]
    assert await listed("?model_id=story") == [second]
    assert await listed("?status=Running") == []
    assert await listed("?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z") == []
    assert await listed("?take=1") == [third]
    assert await listed("?skip=1&take=1") == [second]
    assert await listed("?take=0") == [third]
    assert await listed(f"?skip={10**30}") == []


async def test_take_is_clamped_and_the_answer_says_to_what(host: Client) -> None:
    """HTTP-2"""
    page = (await host.get("/tracon/api/runs?take=100000&skip=-3&with_total=true")).body
    assert page == {"runs": [], "skip": 0, "take": 200, "more": False, "total": 0}


async def test_a_listed_run_is_the_run(host: Client) -> None:
    """EVENT-6"""
    run_id = (await host.run("echo")).body["id"]
    await host.views_show("runs")
    [listed] = (await host.get("/tracon/api/runs")).body["runs"]
    assert listed == (await host.get(f"/tracon/api/runs/{run_id}")).body


async def test_one_run_is_never_behind_its_events(hosts: Hosts) -> None:
    """HTTP-5"""
    host = await hosts.open()
    async with host.start("gated") as stream:
        seen = await stream.until("ToolInvoking")
        run = (await host.get(f"/tracon/api/runs/{stream.run_id}")).body
        assert (run["status"], run["events"]) == ("Running", seen[-1].id)
        hosts.gate.let_go.set()
        seen += await stream.rest()
        run = (await host.get(f"/tracon/api/runs/{stream.run_id}")).body
        assert (run["status"], run["events"]) == ("Completed", seen[-1].id)


async def test_tool_calls_are_listed_with_their_results(hosts: Hosts) -> None:
    """HTTP-5"""
    host = await hosts.open()
    hosts.gate.let_go.set()
    run_id = (await host.run("gated")).body["id"]
    answer = (await host.get(f"/tracon/api/runs/{run_id}/tools")).body
    [call] = answer["tool_calls"]
    assert answer["run_id"] == run_id
    assert (call["tool"], call["state"], call["output"], call["effect"]) == (
        "gate",
        "returned",
        "through",
        "read",
    )


async def test_another_tenants_run_is_not_there(host: Client) -> None:
    """HTTP-2"""
    run_id = RunId(uuid4())
    created = RunCreated(tenant="other", kind=RunKind.AGENT, agent="echo", input=(UserMessage(content="hi"),))
    change = Change(stream_id=run_stream(run_id), expected=Version(0), tenant="other", events=(created,))
    await host.host.services.log.append(change)
    await host.views_show("runs")
    for path in ("", "/events", "/input", "/tools"):
        assert (await host.get(f"/tracon/api/runs/{run_id}{path}")).status == 404
    assert (await host.request("GET", f"/tracon/api/runs/{run_id}/events", headers=STREAM)).status == 404
    assert (await host.post(f"/tracon/api/runs/{run_id}/cancel")).status == 404
    assert (await host.get("/tracon/api/runs")).body["runs"] == []


async def test_statistics_are_by_model_by_agent_and_by_status(host: Client) -> None:
    """HTTP-5"""
    await host.run("echo", "one two")
    await host.run("failing")
    await host.views_show("statistics")
    stats = (await host.get("/tracon/api/stats")).body
    assert {name: count for name, count in stats["by_status"].items() if count} == {
        "Completed": 1,
        "Failed": 1,
    }
    assert {model["model_id"]: model["calls"] for model in stats["by_model"]}["echo"] == 1
    assert {agent["agent"]: agent["failed"] for agent in stats["by_agent"]} == {"echo": 0, "failing": 1}
    assert (await host.get("/tracon/api/stats?until=2020-01-01")).body["by_agent"] == []


async def test_agents_are_listed_and_shown(host: Client) -> None:
    """HTTP-5"""
    agents = (await host.get("/tracon/api/agents")).body["agents"]
    assert [agent["name"] for agent in agents] == sorted(agent["name"] for agent in agents)
    shown = (await host.get("/tracon/api/agents/gated")).body
    assert shown in agents
    assert (shown["provider"], shown["model"], shown["tools"]) == ("scripted", "gated", ["gate"])
