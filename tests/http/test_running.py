"""Running an agent and waiting for its answer."""

import asyncio

import asyncpg
import pytest

from tests.http.client import Answer, Client, eventually
from tests.http.conftest import Hosts
from tests.store.proxy import Proxy


async def test_a_client_that_wants_json_gets_the_run_and_its_answer_when_it_has_ended(host: Client) -> None:
    """HTTP-5"""
    answer = await host.run("story")
    run_id = answer.headers["X-Run-Id"]
    assert answer.status == 200
    run = (await host.get(f"/tracon/api/runs/{run_id}")).body
    assert answer.body == {**run, "answer": "Once upon a time."}
    assert (run["id"], run["status"], run["agent"]) == (run_id, "Completed", "story")


async def test_a_run_in_json_has_the_promised_fields(host: Client) -> None:
    run = (await host.run("echo", "one two", session_id="s")).body
    later = {"continued_by_run_id", "continuation_blocked", "replay_of_run_id", "wait_over", "reported_cost"}
    assert set(run) - {"answer", *later} == {
        "id", "tenant", "kind", "agent", "status", "provider", "model_id", "session_id",
        "root_run_id", "parent_run_id", "depth", "continued_from_run_id",
        "error", "error_type", "error_class", "usage", "cost", "currency",
        "events", "created_at", "started_at", "ended_at",
    }  # fmt: skip
    assert set(run["usage"]) == {
        "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens",
    }  # fmt: skip
    assert (run["session_id"], run["kind"], run["currency"]) == ("s", "agent", "USD")


async def test_what_is_not_streamed_leaves_no_deltas(host: Client) -> None:
    """EVENT-1"""
    run_id = (await host.run("story")).headers["X-Run-Id"]
    assert "TextDelta" not in {event["type"] for event in await host.events(run_id)}


async def test_messages_of_all_roles_are_taken_as_they_are(host: Client) -> None:
    """HTTP-5"""
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    answer = await host.post("/tracon/api/agents/echo/run", {"messages": messages})
    assert answer.body["answer"] == "three"
    told = (await host.get(f"/tracon/api/runs/{answer.body['id']}/input")).body
    assert told == {
        "run_id": answer.body["id"],
        "agent": "echo",
        "messages": messages,
        "session_id": None,
        "parameters": {},
        "overrides": None,
    }


@pytest.mark.parametrize(
    ("agent", "status", "error_type", "retry_after"),
    [
        ("failing", 503, "provider_unavailable", "1"),
        ("rejecting", 422, "provider_rejected", None),
        ("filtered", 422, "content_filtered", None),
    ],
)
async def test_a_run_without_an_answer_is_a_problem_that_carries_the_run(
    host: Client, agent: str, status: int, error_type: str, retry_after: str | None
) -> None:
    """HTTP-1"""
    answer = await host.run(agent)
    run = (await host.get(f"/tracon/api/runs/{answer.headers['X-Run-Id']}")).body
    assert (answer.status, answer.headers.get("Retry-After")) == (status, retry_after)
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert (answer.body["code"], answer.body["detail"]) == (error_type, run["error"])
    assert answer.body["run"] == {**run, "answer": None}


async def test_a_run_that_takes_too_long_is_a_gateway_timeout(hosts: Hosts) -> None:
    """HTTP-1"""
    host = await hosts.open(turn={"timeout": 0.2})
    answer = await host.run("silent")
    assert (answer.status, answer.body["run"]["error_class"]) == (504, "Timeout")


async def test_a_streamed_run_that_fails_says_so_in_its_last_event(host: Client) -> None:
    """HTTP-3"""
    async with host.start("failing") as stream:
        last = (await stream.rest())[-1]
    assert (last.event, last.data["data"]["error_type"]) == ("RunFailed", "provider_unavailable")


RUN_ROUTE = {"method": "POST", "route": "/tracon/api/agents/{name}/run"}


async def test_a_client_that_hangs_up_while_it_waits_does_not_stop_the_run(hosts: Hosts) -> None:
    """HTTP-3"""
    host = await hosts.open()
    waiting = asyncio.create_task(host.run("gated"))
    await asyncio.wait_for(hosts.gate.reached.wait(), 10)
    [actor] = host.host.roster
    await hang_up(host, waiting)
    hosts.gate.let_go.set()
    async with host.watch(str(actor.run_id)) as stream:
        assert (await stream.rest())[-1].event == "RunCompleted"


async def test_a_client_that_hangs_up_while_its_run_is_opened_does_not_leave_it_without_an_owner(
    hosts: Hosts, proxy: Proxy, pool: asyncpg.Pool
) -> None:
    """HTTP-3: at the worst moment, when the run is recorded and its host has not heard of that yet."""
    host = await hosts.open(dsn=proxy.dsn)
    await host.run("echo")
    proxy.hold()
    waiting = asyncio.create_task(host.run("echo"))
    await until_created(pool, 2)
    await hang_up(host, waiting)
    proxy.let_go()
    await host.views_show("runs")
    run, _ = (await host.get("/tracon/api/runs")).body["runs"]
    async with host.watch(run["id"]) as stream:
        assert (await stream.rest())[-1].event == "RunCompleted"


async def hang_up(host: Client, waiting: asyncio.Task[Answer]) -> None:
    """Return when the host has noticed."""
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await eventually(lambda: host.count("tracon_http_requests_total", **RUN_ROUTE, status="499") == 1)


async def until_created(pool: asyncpg.Pool, runs: int) -> None:
    async with asyncio.timeout(10):
        while await pool.fetchval(CREATED) < runs:
            await asyncio.sleep(0.01)


CREATED = "SELECT count(*) FROM stored_events WHERE topic = 'run.created.v1'"
