"""What else there is about a run that waits for an approval: its time, its session, its job, replays."""

import asyncio
from contextlib import AsyncExitStack
from uuid import UUID

import pytest

from app.supervision.sessions import read_session
from domain import events as e
from domain.ids import RunId, approval_stream
from domain.messages import Message, ToolMessage, UserMessage
from domain.session import fold
from tests.hosts import OpenHost, follow, kinds, only
from tests.http.approving import AGENTS, Desk, decide, gone_on, opened, settings, waits
from tests.http.client import Client
from tests.http.interrupted import ClientOf
from tests.http.interrupted import client_of as client_of
from tests.store.proxy import Proxy
from tests.supervision.crashing import close_orphan, die, successor

EXPIRING = '[approvals]\nexpires_after = "300ms"\nexpiry_interval = "{every}"\n'


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def client(host_of: OpenHost, client_of: ClientOf, desk: Desk) -> Client:
    return await client_of(await host_of(settings(), tools=desk.tools()))


async def test_a_run_that_waits_is_withdrawn_by_its_cancel(client: Client, desk: Desk) -> None:
    """CANCEL-1: it is waited for no more; nobody can decide it, and nothing is made."""
    run_id = await waits(client, session_id="s")
    cancelled = await client.post(f"/tracon/api/runs/{run_id}/cancel", {"reason": "not needed"})
    assert cancelled.status == 202
    record = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (record["status"], record["wait_over"]) == ("AwaitingApproval", "withdrawn")
    approval = (await client.get(f"/tracon/api/approvals/{run_id}")).body
    assert (approval["state"], approval["reason"]) == ("withdrawn", "not needed")
    late = await decide(client, run_id)
    assert (late.status, late.body["code"]) == (409, "approval_closed")
    again = await client.post(f"/tracon/api/runs/{run_id}/cancel")
    assert (again.status, again.body["code"]) == (409, "run_already_ended")
    assert desk.ran == {}


async def test_who_waits_for_the_end_of_a_cancelled_wait_is_told_it(client: Client) -> None:
    run_id = await waits(client)
    told = await client.post(f"/tracon/api/runs/{run_id}/cancel?wait=true")
    assert (told.status, told.body["status"]) == (200, "AwaitingApproval")


async def test_a_decided_run_cannot_be_cancelled_but_its_next_one_can(client: Client) -> None:
    run_id = await waits(client)
    await follow(client.host, await opened(client, run_id))
    refused = await client.post(f"/tracon/api/runs/{run_id}/cancel")
    assert (refused.status, refused.body["code"]) == (409, "run_already_ended")


async def test_an_approval_expires_by_itself(host_of: OpenHost, client_of: ClientOf, desk: Desk) -> None:
    """TOOL-2, SINGLE-1: by the database's clock, as periodic work."""
    client = await client_of(await host_of(settings(EXPIRING.format(every="50ms")), tools=desk.tools()))
    run_id = await waits(client, session_id="s")
    end = await _settled(client, run_id)
    assert end.event == e.ApprovalExpired(run_id=run_id)
    asked = (await client.host.services.log.read_stream(approval_stream(run_id)))[0]
    assert (end.at - asked.at).total_seconds() >= 0.3
    record = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (record["status"], record["wait_over"]) == ("AwaitingApproval", "expired")
    assert (await decide(client, run_id)).body["code"] == "approval_closed"
    assert desk.ran == {}
    assert client.count("tracon_approvals_total", outcome="expired") == 1


async def test_who_decides_too_late_is_too_late_whoever_looks(
    host_of: OpenHost, client_of: ClientOf, desk: Desk
) -> None:
    """TOOL-2: it does not matter whether anybody has looked for expired ones."""
    client = await client_of(await host_of(settings(EXPIRING.format(every="1h")), tools=desk.tools()))
    run_id = await waits(client)
    expires_at = (await client.get(f"/tracon/api/approvals/{run_id}")).body["expires_at"]
    assert expires_at is not None

    pool = client.host.services.pool
    async with asyncio.timeout(10):
        while not await pool.fetchval("SELECT clock_timestamp() > $1::text::timestamptz", expires_at):
            await asyncio.sleep(0.02)
    late = await decide(client, run_id)
    assert (late.status, late.body["code"]) == (409, "approval_closed")
    assert (await client.get(f"/tracon/api/approvals/{run_id}")).body["state"] == "expired"


async def test_without_a_limit_an_approval_never_expires(
    host_of: OpenHost, client_of: ClientOf, desk: Desk
) -> None:
    never = '[approvals]\nexpires_after = 0\nexpiry_interval = "20ms"\n'
    client = await client_of(await host_of(settings(never), tools=desk.tools()))
    run_id = await waits(client)
    assert (await client.get(f"/tracon/api/approvals/{run_id}")).body["expires_at"] is None


async def test_a_host_that_drains_takes_decisions(host_of: OpenHost, client_of: ClientOf, desk: Desk) -> None:
    """DRAIN-1: it only writes a job, which waits for a worker that is not draining."""
    draining = await client_of(await host_of(settings(), tools=desk.tools()))
    run_id = await waits(draining)
    draining.host.drain.begin()
    refused = await draining.run("once")
    assert refused.status == 503
    next_id = await opened(draining, run_id)
    assert (await draining.get(f"/tracon/api/runs/{next_id}")).body["status"] == "Queued"
    other = await host_of(settings(), tools=desk.tools())
    assert kinds(await follow(other, next_id))[-1] == "RunCompleted"
    assert desk.ran == {"refund": 1}


async def test_a_session_goes_on_while_one_of_its_runs_waits(client: Client) -> None:
    """The run that waits has ended. Its turn is added by the run that goes on, when that is over."""
    run_id = await waits(client, session_id="s", message="first")
    between = await waits(client, session_id="s", message="second")
    await gone_on(client, run_id)
    seen = await gone_on(client, between, "reject")
    messages = await _conversation(client, seen)
    asked = [message.content for message in messages if isinstance(message, UserMessage)]
    assert asked == ["first"]
    assert [message.content for message in messages if isinstance(message, ToolMessage)] == ["refunded 7"]


async def test_a_wait_that_is_over_leaves_its_turn_to_the_session(client: Client) -> None:
    """As the turn of a cancelled run: every call has a result that a provider accepts."""
    run_id = await waits(client, session_id="s", message="first")
    await client.post(f"/tracon/api/runs/{run_id}/cancel")
    second = await waits(client, session_id="s", message="second")
    messages = await _conversation(client, await gone_on(client, second))
    assert [message.content for message in messages if isinstance(message, UserMessage)] == ["first"]
    [result] = [message for message in messages if isinstance(message, ToolMessage)]
    assert (result.failed, "not made" in result.content) == (True, True)


async def test_a_queued_run_waits_like_any_other(client: Client, desk: Desk) -> None:
    """JOB-1: its job is done; the run that goes on is a job of the same lane."""
    path = "/tracon/api/agents/once/run"
    body = {"message": "refund", "queue": {"priority": 7}}
    queued = await client.post(path, body, Prefer="respond-async")
    assert queued.status == 202
    run_id = RunId(UUID(queued.body["id"]))
    assert kinds(await follow(client.host, run_id))[-1] == "RunAwaitingApproval"
    job = (await client.get(f"/tracon/api/jobs/{run_id}")).body
    assert (job["status"], job["error"]) == ("AwaitingApproval", None)
    next_id = await opened(client, run_id)
    await follow(client.host, next_id)
    assert (await client.get(f"/tracon/api/jobs/{next_id}")).body["priority"] == 7


async def test_a_run_below_another_does_not_ask(host_of: OpenHost, client_of: ClientOf, desk: Desk) -> None:
    """TOOL-2: its parent waits for it, so the model is told that nobody can be asked."""
    lead = (
        "[[providers.script.models.lead.default]]\n"
        'tool_call = { name = "once", arguments = { message = "go" } }\n'
        '[[providers.script.models.lead.default]]\nlast_tool_result = "It came to: {result}"\n'
        '[agents.lead]\nprovider = "script"\nmodel = "lead"\nagents = ["once"]\n'
    )
    client = await client_of(await host_of(settings(agents=AGENTS + lead), tools=desk.tools()))
    answer = await client.run("lead")
    assert answer.status == 200
    assert "nobody can be asked" in answer.body["answer"]
    assert desk.ran == {}


async def test_a_tool_that_is_gone_by_then_is_a_result_that_the_model_reads(
    host_of: OpenHost, client_of: ClientOf, desk: Desk
) -> None:
    async with AsyncExitStack() as first:
        host = await host_of(settings(), tools=desk.tools(), within=first, worker=False)
        run_id = await waits(await client_of(host))
    [look, _, mail] = desk.tools()
    without = AGENTS.replace('"look", "refund", "mail"', '"look", "mail"')
    client = await client_of(await host_of(settings(agents=without), tools=(look, mail)))
    seen = await gone_on(client, run_id)
    assert [one.failure for one in only(seen, e.ToolFailed)] == [e.ToolFailure.UNKNOWN_TOOL]
    assert kinds(seen)[-1] == "RunCompleted"


async def test_a_decided_run_that_is_interrupted_is_continued_with_its_decision(
    host_of: OpenHost, client_of: ClientOf, desk: Desk
) -> None:
    """CONT-2: what its chain had done is answered from the record, what was approved is not asked again."""
    dying = await client_of(await host_of(settings(), tools=desk.tools(hold="look")))
    run_id = await waits(dying, "long", session_id="s")
    next_id = await opened(dying, run_id)
    await desk.held.wait()
    await die(dying.host)
    other = await host_of(settings(), tools=desk.tools(), worker=False)
    await close_orphan(other, next_id)
    seen = await follow(other, await successor(other, next_id))
    assert [one.call_id for one in only(seen, e.ToolAnswered)] == ["c1"]
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="Done: looked")]
    assert desk.ran == {"refund": 1, "look": 2}


@pytest.mark.parametrize(("tools", "failure"), [("recorded", None), ("none", "not_run"), ("live", "denied")])
async def test_a_run_that_went_on_can_be_replayed(
    client: Client, desk: Desk, tools: str, failure: str | None
) -> None:
    """What somebody approved of once is not done a second time; a replay bothers nobody."""
    next_id = await opened(client, await waits(client))
    await follow(client.host, next_id)
    replay = await client.post(f"/tracon/api/runs/{next_id}/replay", {"tools": tools})
    assert replay.status == 201, replay.body
    seen = await follow(client.host, RunId(UUID(replay.body["id"])))
    assert [one.failure for one in only(seen, e.ToolFailed)] == ([failure] if failure else [])
    assert [one.output for one in only(seen, e.ToolAnswered)] == ([] if failure else ["refunded 7"])
    assert kinds(seen)[-1] == "RunCompleted"
    assert desk.ran == {"refund": 1}


async def test_a_rejection_is_replayed_as_one(client: Client, desk: Desk) -> None:
    next_id = await opened(client, await waits(client), "reject")
    await follow(client.host, next_id)
    replay = await client.post(f"/tracon/api/runs/{next_id}/replay")
    seen = await follow(client.host, RunId(UUID(replay.body["id"])))
    assert [one.failure for one in only(seen, e.ToolFailed)] == [e.ToolFailure.DENIED]


async def test_a_decision_that_could_not_be_kept_is_said_again(
    host_of: OpenHost, client_of: ClientOf, desk: Desk, proxy: Proxy
) -> None:
    """EVENT-8: 503 with Retry-After; nothing of it was acknowledged, and saying it again is harmless."""
    client = await client_of(await host_of(settings(), tools=desk.tools(), dsn=proxy.dsn))
    run_id = await waits(client)
    await proxy.refuse()
    away = await decide(client, run_id)
    assert (away.status, away.body["code"]) == (503, "store_unavailable")
    assert "Retry-After" in away.headers
    await proxy.accept()
    async with asyncio.timeout(20):
        while (await decide(client, run_id)).status != 200:
            await asyncio.sleep(0.05)
    await follow(client.host, await opened(client, run_id))
    assert desk.ran == {"refund": 1}


async def _settled(client: Client, run_id: RunId) -> e.Recorded[e.Event]:
    async for batch in client.host.services.log.follow(approval_stream(run_id), 1):
        return batch[0]
    raise AssertionError("a stream is followed for ever")


async def _conversation(client: Client, seen: list[e.Recorded[e.Event]]) -> tuple[Message, ...]:
    """What the session had said before the run began."""
    [started] = only(seen, e.RunStarted)
    recorded = await read_session(client.host.services.log, "default", "s", limit=started.session_version)
    return fold(recorded).messages
