"""Tool calls that a person has to approve of, over HTTP (TOOL-2)."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from app.keys.key import Scope
from domain import events as e
from domain.ids import RunId, run_stream
from domain.messages import ToolMessage
from domain.refusals import RunAlreadyEnded
from tests.hosts import OpenHost, follow, kinds, only, start
from tests.http.approving import Desk, decide, gone_on, opened, settings, waits
from tests.http.client import Client
from tests.http.interrupted import ClientOf
from tests.http.interrupted import client_of as client_of
from tests.http.test_auth import key


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def client(host_of: OpenHost, client_of: ClientOf, desk: Desk) -> Client:
    return await client_of(await host_of(settings(), tools=desk.tools()))


async def test_a_call_that_requires_approval_ends_the_run_before_it_is_made(
    client: Client, desk: Desk
) -> None:
    """TOOL-2: calls before it are made; it and what comes after it wait."""
    run_id = await waits(client, "m")
    assert desk.ran == {"look": 2}
    seen = await follow(client.host, run_id)
    [waiting] = only(seen, e.RunAwaitingApproval)
    assert [(call.call_id, call.tool, call.arguments, call.effect) for call in waiting.calls] == [
        ("c2", "refund", '{"order":"7"}', "destructive"),
        ("c4", "refund", '{"order":"8"}', "destructive"),
    ]
    assert kinds(seen)[-1] == "RunAwaitingApproval"
    record = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (record["status"], record["wait_over"], record["error"]) == ("AwaitingApproval", None, None)
    assert record["ended_at"] is not None


async def test_the_decision_opens_a_run_that_makes_the_call_once(client: Client, desk: Desk) -> None:
    """TOOL-2: recorded first, then applied; nothing that was done is done again."""
    run_id = await waits(client, "m")
    next_id = await opened(client, run_id)
    seen = await follow(client.host, next_id)
    [created] = only(seen, e.RunCreated)
    assert (created.continued_from_run_id, created.chain_root_run_id) == (run_id, run_id)
    assert [one.call_id for one in only(seen, e.ToolInvoking)] == ["c2", "c3", "c4"]
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="Done: refunded 8")]
    assert desk.ran == {"look": 2, "refund": 2, "mail": 1}
    assert len({call_key for _, call_key in desk.done}) == len(desk.done)
    [continued] = only([*await client.host.services.log.read_stream(run_stream(run_id))], e.RunContinued)
    assert continued.by == next_id
    before = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (before["status"], before["continued_by_run_id"]) == ("AwaitingApproval", str(next_id))


async def test_the_model_reads_why_a_call_was_rejected(client: Client, desk: Desk) -> None:
    run_id = await waits(client)
    seen = await gone_on(client, run_id, "reject", reason="Too much.")
    [failed] = only(seen, e.ToolFailed)
    assert failed.failure is e.ToolFailure.DENIED
    assert "Too much." in failed.output
    assert "It says: A person did not approve" in only(seen, e.RunCompleted)[0].answer
    assert desk.ran == {}


async def test_each_call_can_be_decided_of_by_itself(client: Client, desk: Desk) -> None:
    run_id = await waits(client, "m")
    calls = {"c4": {"decision": "reject", "reason": "not that one"}}
    answer = await decide(client, run_id, "approve", calls=calls)
    told = {call["call_id"]: (call["approved"], call["reason"]) for call in answer.body["calls"]}
    assert told == {"c2": (True, None), "c4": (False, "not that one")}
    seen = await follow(client.host, RunId(UUID(answer.body["opened_run_id"])))
    assert [one.call_id for one in only(seen, e.ToolReturned)] == ["c2", "c3"]
    assert desk.ran["refund"] == 1


async def test_a_decision_is_of_the_calls_that_wait(client: Client, desk: Desk) -> None:
    """Every error names its field (HTTP-1)."""
    run_id = await waits(client, "m")
    for body in (
        {"calls": {"c2": {"decision": "approve"}}},
        {"decision": "approve", "calls": {"c9": {"decision": "reject"}}},
    ):
        refused = await client.post(f"/tracon/api/approvals/{run_id}/decide", body)
        assert (refused.status, refused.body["code"]) == (400, "incomplete_decision")
        assert refused.body["errors"][0]["field"] == "$.calls"
    for wrong in ({}, {"decision": "perhaps"}, {"decision": "approve", "wer": 1}):
        refused = await client.post(f"/tracon/api/approvals/{run_id}/decide", wrong)
        assert (refused.status, refused.body["code"]) == (400, "bad_body")
    assert (await client.get(f"/tracon/api/approvals/{run_id}")).body["state"] == "pending"


async def test_the_same_decision_again_is_answered_alike_and_the_opposite_refused(client: Client) -> None:
    """TOOL-2"""
    run_id = await waits(client)
    first = await decide(client, run_id, reason="fine")
    again = await decide(client, run_id, reason="still fine")
    assert (first.status, again.status) == (200, 200)
    assert first.body == again.body
    opposite = await decide(client, run_id, "reject")
    assert (opposite.status, opposite.body["code"]) == (409, "approval_decided_otherwise")
    await follow(client.host, RunId(UUID(first.body["opened_run_id"])))


async def test_two_hosts_that_decide_at_once_open_one_run(
    host_of: OpenHost, client_of: ClientOf, desk: Desk
) -> None:
    """TOOL-2: the decision and its run are one append."""
    one, other = [await client_of(await host_of(settings(), tools=desk.tools())) for _ in range(2)]
    for _ in range(5):
        run_id = await waits(one)
        answers = await asyncio.gather(*(decide(client, run_id) for client in (one, other, one, other)))
        assert {answer.status for answer in answers} == {200}
        [next_id] = {answer.body["opened_run_id"] for answer in answers}
        await follow(other.host, RunId(UUID(next_id)))
    assert desk.ran == {"refund": 5}


async def test_of_two_opposite_decisions_at_once_one_stands(
    host_of: OpenHost, client_of: ClientOf, desk: Desk
) -> None:
    one, other = [await client_of(await host_of(settings(), tools=desk.tools())) for _ in range(2)]
    run_id = await waits(one)
    answers = await asyncio.gather(decide(one, run_id), decide(other, run_id, "reject"))
    assert sorted(answer.status for answer in answers) == [200, 409]
    [stands] = [answer for answer in answers if answer.status == 200]
    await follow(one.host, RunId(UUID(stands.body["opened_run_id"])))
    assert desk.ran.total() == int(stands.body["calls"][0]["approved"])


async def test_a_decision_is_of_one_step_only(client: Client, desk: Desk) -> None:
    """A later call of the same id is another call, and waits for a decision of its own."""
    run_id = await waits(client, "twice")
    seen = await gone_on(client, run_id)
    assert kinds(seen)[-1] == "RunAwaitingApproval"
    assert desk.ran == {"refund": 1}
    last = await gone_on(client, RunId(seen[0].stream_id), "reject")
    assert kinds(last)[-1] == "RunCompleted"
    assert desk.ran == {"refund": 1}
    [created] = only(last, e.RunCreated)
    assert created.chain_root_run_id == run_id
    results = [message for message in created.input if isinstance(message, ToolMessage)]
    assert [message.content for message in results] == ["refunded 7"]


async def test_nobody_is_asked_about_a_call_that_cannot_be_made(client: Client, desk: Desk) -> None:
    """TOOL-1: wrong arguments are a result that the model reads, at once."""
    answer = await client.run("broken")
    assert (answer.status, answer.body["answer"]) == (200, "I was wrong.")
    assert desk.ran == {}


async def test_approvals_are_listed_and_read(client: Client) -> None:
    first, second = await waits(client, session_id="s"), await waits(client, "m")
    await follow(client.host, await opened(client, first))
    await client.views_show("approvals")
    listed = (await client.get("/tracon/api/approvals")).body
    assert [one["id"] for one in listed["approvals"]] == [str(second), str(first)]
    for query, ids in (
        ("state=pending", [second]),
        ("state=decided", [first]),
        ("agent=once", [first]),
        ("session_id=s", [first]),
        ("skip=1&take=1", [first]),
        ("state=expired", []),
    ):
        page = (await client.get(f"/tracon/api/approvals?{query}")).body
        assert [one["id"] for one in page["approvals"]] == [str(run_id) for run_id in ids], query
    one = (await client.get(f"/tracon/api/approvals/{first}")).body
    assert one == listed["approvals"][1]
    assert (one["state"], one["calls"][0]["approved"], one["settled_by"]) == ("decided", True, None)
    waiting = (await client.get("/metrics")).body.decode()
    assert "tracon_approvals_waiting 1.0" in waiting
    assert client.count("tracon_approvals_total", outcome="approved") == 1
    assert client.count("tracon_runs_ended_total", status="AwaitingApproval") == 2


async def test_who_decides_is_on_record_and_must_be_an_operator(client: Client) -> None:
    """HTTP-2, HTTP-4"""
    run_id = await waits(client)
    path = f"/tracon/api/approvals/{run_id}/decide"
    runner = await key(client, Scope.RUN, tenant="default")
    refused = await client.post(path, {"decision": "approve"}, **runner)
    assert (refused.status, refused.body["code"]) == (403, "scope_missing")
    stranger = await key(client, Scope.OPERATE, Scope.READ, tenant="other")
    assert (await client.post(path, {"decision": "approve"}, **stranger)).status == 404
    assert (await client.get(f"/tracon/api/approvals/{run_id}", **stranger)).status == 404
    operator = await key(client, Scope.OPERATE, tenant="default")
    answer = await client.post(path, {"decision": "approve"}, **operator)
    keys = (await client.get("/tracon/api/keys")).body["keys"]
    assert answer.body["settled_by"] in {one["id"] for one in keys}
    await follow(client.host, RunId(UUID(answer.body["opened_run_id"])))


async def test_what_is_no_approval_is_not_found(client: Client) -> None:
    run_id = await start(client.host, "once")
    for unknown in ("none", "00000000-0000-0000-0000-000000000000"):
        assert (await client.get(f"/tracon/api/approvals/{unknown}")).body["code"] == "approval_not_found"
        answer = await client.post(f"/tracon/api/approvals/{unknown}/decide", {"decision": "approve"})
        assert answer.status == 404
    await follow(client.host, run_id)


async def test_a_watcher_has_the_end_of_its_stream(client: Client) -> None:
    """HTTP-3: the run is over; the next one has a stream of its own."""
    async with client.start("once") as stream:
        frames = await stream.rest()
    assert frames[-1].event == "RunAwaitingApproval"
    assert frames[-1].data["data"]["calls"][0]["tool"] == "refund"
    after = await client.request(
        "GET",
        f"/tracon/api/runs/{stream.run_id}/events",
        headers={"Accept": "text/event-stream", "Last-Event-ID": str(frames[-1].id)},
    )
    assert after.status == 204


async def test_tool_calls_of_both_runs_are_told(client: Client) -> None:
    run_id = await waits(client)
    assert (await client.get(f"/tracon/api/runs/{run_id}/tools")).body["tool_calls"] == []
    next_id = await opened(client, run_id)
    await follow(client.host, next_id)
    [call] = (await client.get(f"/tracon/api/runs/{next_id}/tools")).body["tool_calls"]
    assert (call["call_id"], call["state"], call["step"]) == ("c1", "returned", 0)
    await client.views_show("tools")
    [listed] = (await client.get("/tracon/api/tools?tool=refund")).body["tool_calls"]
    assert listed["run_id"] == str(next_id)


async def word_left(client: Client, pool: asyncpg.Pool, host: str) -> RunId:
    """A run that came to wait just after its cancel was accepted, which its owner had not read by then."""
    run_id = await waits(client)
    left = "INSERT INTO cancel_requests (run_id, host_id, reason) VALUES ($1, $2, 'changed my mind')"
    await pool.execute(left, run_id, host)
    return run_id


async def withdrawn(client: Client, pool: asyncpg.Pool, run_id: RunId) -> None:
    """Nothing can be approved any more, and no word of the cancel is left."""
    async with asyncio.timeout(10):
        while await pool.fetchval("SELECT count(*) FROM cancel_requests"):
            await asyncio.sleep(0.01)
    events = await client.host.services.log.read_stream(run_stream(run_id))
    [ended] = only(events, e.RunWaitEnded)
    assert (ended.cause, ended.reason) == (e.WaitOver.WITHDRAWN, "changed my mind")
    assert (await decide(client, run_id)).status == 409


async def test_a_cancel_that_was_accepted_before_the_run_came_to_wait_withdraws_it(
    client: Client, pool: asyncpg.Pool, desk: Desk
) -> None:
    """CANCEL-1: nobody may approve what somebody has cancelled."""
    run_id = await word_left(client, pool, client.host.bench.host)
    await withdrawn(client, pool, run_id)
    assert desk.ran == {}


async def test_the_same_when_its_host_is_gone(client: Client, pool: asyncpg.Pool, desk: Desk) -> None:
    """CANCEL-1: whichever host settles what is left of cancels."""
    run_id = await word_left(client, pool, "a-host-that-died")
    await client.views_show("runs")
    await client.host.services.runs._cancels.settle()
    await withdrawn(client, pool, run_id)
    assert desk.ran == {}


async def test_who_decides_after_an_accepted_cancel_comes_too_late(
    client: Client, pool: asyncpg.Pool, desk: Desk
) -> None:
    """CANCEL-1: also before anybody has settled what the run's host, now gone, had not read."""
    run_id = await word_left(client, pool, "a-host-that-died")
    answer = await decide(client, run_id)
    assert (answer.status, answer.body["code"]) == (409, "approval_closed")
    assert only(await client.host.services.log.read_stream(run_stream(run_id)), e.RunContinued) == []
    assert desk.ran == {}


async def test_a_cancel_that_was_heeded_by_others_first_is_no_cancel_that_came_too_late(
    client: Client, pool: asyncpg.Pool
) -> None:
    """CANCEL-1: between its word and its look at the run, somebody who came to decide withdrew the run."""
    run_id = await word_left(client, pool, "a-host-that-died")
    await decide(client, run_id)
    await client.host.services.runs._not_too_late(run_id, None, "changed my mind")
    with pytest.raises(RunAlreadyEnded):
        await client.host.services.runs._not_too_late(await opened_and_gone(client), None, "too late")


async def opened_and_gone(client: Client) -> RunId:
    """A run that waited, and that a decision has gone on from."""
    run_id = await waits(client)
    await opened(client, run_id)
    return run_id
