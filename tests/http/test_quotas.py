"""Quotas over HTTP: who is refused, with what, and what a live run comes to (BUDGET-6)."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from projections.rebuild import rebuild
from projections.statistics import Statistics
from tests.http.client import Answer, Client
from tests.http.conftest import Hosts
from tests.jobs.working import within
from tests.projections.writing import Interfering

RUN = "/tracon/api/agents/echo/run"
CHAT = "/tracon/v1/chat/completions"
HELLO = {"message": "hello"}


def quota(metric: str, limit: object, period: str = "day", **more: object) -> dict[str, Any]:
    return {"quotas": {"q": {"metric": metric, "limit": limit, "period": period, **more}}}


async def counted(client: Client, **figures: int) -> dict[str, Any]:
    """The tenant's one quota, once the statistics have what is expected of it."""
    async with within():
        while True:
            [found] = (await client.get("/tracon/api/quotas")).body["quotas"]
            if all(Decimal(found[name]) == figure for name, figure in figures.items()):
                return dict(found)
            await asyncio.sleep(0.005)


def tomorrow() -> datetime:
    today = datetime.now(UTC).date() + timedelta(days=1)
    return datetime(today.year, today.month, today.day, tzinfo=UTC)


async def test_a_run_over_the_quota_is_refused_with_metric_period_limit_and_reset(hosts: Hosts) -> None:
    """BUDGET-6: 429 at admission, and nothing was begun."""
    client = await hosts.open(**quota("runs", 1))
    reset = tomorrow()
    assert (await client.post(RUN, HELLO)).status == 200
    refused = await client.post(RUN, HELLO)
    assert refused.status == 429
    assert refused.body["code"] == "tenant_quota_exceeded"
    assert (refused.body["quota"]["metric"], refused.body["quota"]["period"]) == ("runs", "day")
    assert Decimal(refused.body["quota"]["limit"]) == 1
    assert datetime.fromisoformat(refused.body["resets_at"]) >= reset
    assert "quotas.q.limit raises it" in refused.body["detail"]
    assert 0 < int(refused.headers["Retry-After"]) <= 86_400
    state = await counted(client, used=1)
    assert Decimal(state["remaining"]) == 0


async def test_a_limit_of_nothing_admits_nothing(hosts: Hosts) -> None:
    """Remaining 0 is 0, never without limit."""
    for metric in ("runs", "tokens", "cost"):
        client = await hosts.open(**quota(metric, 0))
        assert (await client.post(RUN, HELLO)).status == 429


async def test_hosts_that_are_asked_at_once_admit_no_more_than_the_limit(
    hosts: Hosts, pool: asyncpg.Pool
) -> None:
    """BUDGET-6: quotas are atomic across hosts; no two first requests both pass."""
    clients = [await hosts.open(**quota("runs", 7)) for _ in range(3)]
    answers = await asyncio.gather(*(client.post(RUN, HELLO) for client in clients for _ in range(8)))
    assert sorted(answer.status for answer in answers) == [200] * 7 + [429] * 17
    await counted(clients[0], used=7)
    created = "SELECT count(*) FROM stored_events WHERE topic = 'run.created.v1'"
    assert await pool.fetchval(created) == 7


async def test_a_submission_that_fails_after_its_admission_uses_nothing_up(hosts: Hosts) -> None:
    client = await hosts.open(**quota("runs", 1))
    taken = {"message": "hello", "session_id": "s"}
    gated = await hosts.open(**quota("runs", 100), sessions={"concurrency": "reject"})
    async with hosts.in_background(gated.post("/tracon/api/agents/gated/run", taken)):
        await hosts.gate.reached.wait()
        rejecting = await hosts.open(**quota("runs", 2), sessions={"concurrency": "reject"})
        busy = await rejecting.post(RUN, taken)
        assert (busy.status, busy.body["code"]) == (409, "session_busy")
        assert (await rejecting.post(RUN, HELLO)).status == 200
        hosts.gate.let_go.set()
    assert (await client.post(RUN, HELLO)).status == 429


async def test_another_tenant_and_another_agent_have_what_is_theirs(hosts: Hosts) -> None:
    elsewhere = await hosts.open(**quota("runs", 0, tenant="somebody else"))
    assert (await elsewhere.post(RUN, HELLO)).status == 200
    assert (await elsewhere.get("/tracon/api/quotas")).body == {"quotas": []}
    other = await hosts.open(**quota("runs", 0, agent="story"))
    assert (await other.post(RUN, HELLO)).status == 200
    assert (await other.post("/tracon/api/agents/story/run", HELLO)).status == 429


@pytest.mark.parametrize("metric", ["tokens", "cost"])
async def test_what_was_spent_refuses_the_next_run(hosts: Hosts, metric: str) -> None:
    """BUDGET-6: tokens and cost count when they are spent; the counter is the statistics' own figure."""
    client = await hosts.open(**quota(metric, "0.000001", "month"))
    assert (await client.post(RUN, HELLO)).status == 200
    async with within():
        # One that is admitted before the statistics have the first is stopped by its own host.
        while "quota" not in (refused := await client.post(RUN, HELLO)).body:
            await asyncio.sleep(0.005)
    assert refused.body["quota"]["period"] == "month"
    await client.views_show("statistics")
    [state] = (await client.get("/tracon/api/quotas")).body["quotas"]
    [model] = (await client.get("/tracon/api/stats")).body["by_model"]
    used = (
        model["usage"]["input_tokens"] + model["usage"]["output_tokens"]
        if metric == "tokens"
        else model["costs"]["USD"]
    )
    assert Decimal(state["used"]) == Decimal(used) > 0


async def test_every_way_to_submit_is_held_to_it(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0")
    client = await hosts.open(**quota("runs", 1), triggers={"t": {"agent": "echo", "secret_env": "SECRET"}})
    run = (await client.post(RUN, HELLO)).body
    schedule = {"name": "s", "agent": "echo", "message": "m", "cron": "0 0 1 1 *"}
    assert (await client.post("/tracon/api/schedules", schedule)).status == 201
    refusals: list[Answer] = [
        await client.post(RUN, HELLO, Prefer="respond-async"),
        await client.post(RUN, HELLO, **{"Idempotency-Key": "k"}),
        await client.post(CHAT, {"model": "echo", "messages": [{"role": "user", "content": "hi"}]}),
        await client.post("/tracon/v1/responses", {"model": "echo", "input": "hi"}),
        await client.post("/tracon/api/batches", {"agent": "echo", "items": [{"message": "m"}]}),
        await client.post("/tracon/api/schedules/s/trigger"),
        await client.post(f"/tracon/api/runs/{run['id']}/replay"),
    ]
    assert [answer.status for answer in refusals] == [429] * len(refusals)
    assert refusals[2].headers["X-Should-Retry"] == "false"
    keys = (await client.get("/tracon/api/idempotency")).body["keys"]
    assert keys == []  # a 429 never holds a key


async def test_a_quota_that_a_run_uses_up_stops_its_next_tool_call_and_its_next_model_turn(
    hosts: Hosts,
) -> None:
    """BUDGET-6: it stands where the budget of a tree stands, and counts what the statistics have not seen."""
    client = await hosts.open(**quota("tokens", 1))
    ended = await client.post("/tracon/api/agents/gated/run", HELLO)
    assert ended.status == 429
    run = ended.body["run"]
    assert (run["status"], run["error_type"], run["error_class"]) == (
        "Failed",
        "tenant_quota_exceeded",
        "QuotaExceeded",
    )
    assert "quotas.q.limit" in run["error"]
    events = (await client.get(f"/tracon/api/runs/{run['id']}/events")).body["events"]
    [refused] = [one for one in events if one["type"] == "ToolFailed"]
    assert "did not start" in refused["data"]["output"]
    assert not [one for one in events if one["type"] == "ToolInvoking"]
    assert not hosts.gate.reached.is_set()


async def test_a_call_that_the_quota_refuses_is_put_before_nobody(hosts: Hosts) -> None:
    """BUDGET-4, BUDGET-6: a person would be asked for something that cannot be."""
    client = await hosts.open(**quota("tokens", 1))
    ended = await client.post("/tracon/api/agents/asking/run", HELLO)
    assert (ended.status, ended.body["run"]["error_type"]) == (429, "tenant_quota_exceeded")
    events = await client.events(ended.body["run"]["id"])
    assert [one["data"]["failure"] for one in events if one["type"] == "ToolFailed"] == ["refused"]


async def test_what_another_host_spends_stops_a_live_run_here(hosts: Hosts) -> None:
    """BUDGET-6: the counter is the tenant's, on all hosts."""
    here, there = await hosts.open(**quota("tokens", 50)), await hosts.open(**quota("tokens", 10_000))
    async with hosts.in_background(here.post("/tracon/api/agents/gated/run", HELLO)) as waiting:
        await hosts.gate.reached.wait()
        await there.post(RUN, {"message": "much to say " * 50})
        async with within():
            book = here.host.bench.trees.quotas
            while not any(standing.is_spent for standing in book.standings("default")):
                await asyncio.sleep(0.01)
        hosts.gate.let_go.set()
        ended = await waiting
    assert (ended.status, ended.body["run"]["error_type"]) == (429, "tenant_quota_exceeded")


async def test_a_batch_has_room_for_all_its_items_or_for_none(hosts: Hosts) -> None:
    client = await hosts.open(**quota("runs", 2))
    three = {"agent": "echo", "items": [{"message": "m"}] * 3}
    assert (await client.post("/tracon/api/batches", three)).status == 429
    two = {"agent": "echo", "items": [{"message": "m"}] * 2}
    assert (await client.post("/tracon/api/batches", two)).status == 202
    assert (await client.post("/tracon/api/batches", {**two, "items": two["items"][:1]})).status == 429


async def test_a_quota_holds_while_the_statistics_are_rebuilt(hosts: Hosts, pool: asyncpg.Pool) -> None:
    """BUDGET-6, EVENT-6: what was folded before counts until all of it is folded again."""
    client = await hosts.open(**quota("runs", 2))
    assert (await client.post(RUN, HELLO)).status == 200
    await counted(client, used=1)
    seen = list[object]()

    async def submit(page: int) -> None:
        if page == 2:
            seen.append(Decimal((await client.get("/tracon/api/quotas")).body["quotas"][0]["used"]))
            seen.extend([(await client.post(RUN, HELLO)).status for _ in range(2)])

    await rebuild(Statistics(), pool, Interfering(client.host.services.log, submit), page=2)
    assert seen == [1, 200, 429]
    await client.views_show("statistics")
    await counted(client, used=2, remaining=0)


async def test_who_decides_of_a_run_that_waits_needs_no_quota(hosts: Hosts) -> None:
    """BUDGET-6, TOOL-2: its run was admitted; the one that goes on counts like any other."""
    client = await hosts.open(**quota("runs", 1))
    run_id = (await client.post("/tracon/api/agents/asking/run", HELLO)).body["id"]
    decided = await client.post(f"/tracon/api/approvals/{run_id}/decide", {"decision": "approve"})
    assert decided.status == 200
    await counted(client, used=2, remaining=0)
    assert (await client.post(RUN, HELLO)).status == 429


async def test_a_tenant_without_a_quota_costs_no_query(hosts: Hosts, pool: asyncpg.Pool) -> None:
    client = await hosts.open(**quota("runs", 5, tenant="somebody else"))
    await client.post(RUN, HELLO)
    assert await pool.fetchval("SELECT count(*) FROM quota_reservations") == 0


@pytest.mark.parametrize("limit", ["NaN", "Infinity", -1, "much"])
async def test_a_limit_that_is_no_limit_is_refused_at_the_start(hosts: Hosts, limit: object) -> None:
    with pytest.raises(Exception, match="limit"):
        await hosts.open(**quota("cost", limit))
