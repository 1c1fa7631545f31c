"""Calls whose outcome nobody knows: seen, found out, and what follows."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from app.keys.key import Scope
from domain.ids import RunId
from tests.hosts import OpenHost, follow, kinds, scripted
from tests.http.client import STREAM, Client
from tests.http.interrupted import ClientOf, interrupted, uncertain_call
from tests.http.interrupted import client_of as client_of
from tests.http.test_auth import key

FOUND = {"output": "refunded at noon"}


async def listed(client: Client, query: str = "?state=unknown") -> list[Any]:
    await client.views_show("tools")
    answer = await client.get(f"/tracon/api/tools{query}")
    assert answer.status == 200, answer.body
    calls: list[Any] = answer.body["tool_calls"]
    return calls


async def test_a_call_of_a_run_that_was_interrupted_is_unknown_until_somebody_says(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    """CONT-3: in the run's own list and in that of all runs."""
    client, run_id, _ = await interrupted(host_of, client_of)
    [call] = await listed(client)
    assert (call["run_id"], call["tool"], call["effect"]) == (str(run_id), "refund", "destructive")
    assert [one["tool"] for one in await listed(client, f"?run_id={run_id}&state=returned")] == ["look"]
    assert [one["tool"] for one in await listed(client, "?tool=refund")] == ["refund"]
    assert (await client.post(f"{await uncertain_call(client, run_id)}/resolve", FOUND)).status == 200
    assert await listed(client) == []


async def test_the_truth_is_recorded_and_the_run_goes_on(host_of: OpenHost, client_of: ClientOf) -> None:
    """CONT-3: the answer names the run that continues it."""
    client, run_id, world = await interrupted(host_of, client_of)
    before = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (before["status"], before["continuation_blocked"]) == ("Failed", "outcome_unknown")
    answer = await client.post(f"{await uncertain_call(client, run_id)}/resolve", FOUND)
    call = answer.body["tool_call"]
    assert (call["state"], call["output"], call["resolved"]) == ("returned", "refunded at noon", True)
    assert answer.body["continuation_blocked"] is None
    new = RunId(UUID(answer.body["continued_by_run_id"]))
    assert kinds(await follow(client.host, new))[-1] == "RunCompleted"
    after = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (after["status"], after["continued_by_run_id"]) == ("Failed", str(new))
    assert (await client.get(f"/tracon/api/runs/{new}")).body["continued_from_run_id"] == str(run_id)
    assert world.ran()["refund"] == 1


async def test_a_call_that_failed_is_resolved_as_failed(host_of: OpenHost, client_of: ClientOf) -> None:
    client, run_id, _ = await interrupted(host_of, client_of)
    body = {"output": "no such order", "failed": True}
    answer = await client.post(f"{await uncertain_call(client, run_id)}/resolve", body)
    assert (answer.status, answer.body["tool_call"]["state"]) == (200, "failed")


async def test_what_else_stands_against_continuing_is_told(host_of: OpenHost, client_of: ClientOf) -> None:
    """CONT-4: a run without a session is not continued, whatever is known of its calls."""
    client, run_id, _ = await interrupted(host_of, client_of, session_id=None)
    answer = await client.post(f"{await uncertain_call(client, run_id)}/resolve", FOUND)
    assert (answer.status, answer.body["continued_by_run_id"]) == (200, None)
    assert answer.body["continuation_blocked"] == "no_session"


async def test_the_same_again_changes_nothing_and_anything_else_is_refused(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    client, run_id, _ = await interrupted(host_of, client_of)
    path = f"{await uncertain_call(client, run_id)}/resolve"
    first = await client.post(path, FOUND)
    events = await client.events(str(run_id))
    assert (await client.post(path, FOUND)).body == first.body
    for other in ({"output": "refused"}, {**FOUND, "failed": True}):
        answer = await client.post(path, other)
        assert (answer.status, answer.body["code"]) == (409, "resolved_otherwise")
    assert await client.events(str(run_id)) == events


async def test_only_what_is_uncertain_in_a_run_that_is_over_can_be_resolved(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    client, run_id, _ = await interrupted(host_of, client_of)
    calls = (await client.get(f"/tracon/api/runs/{run_id}/tools")).body["tool_calls"]
    known = next(call["call_id"] for call in calls if call["tool"] == "look")
    for call_id, status, code in ((known, 409, "outcome_known"), ("nothing", 404, "tool_call_not_found")):
        answer = await client.post(f"/tracon/api/runs/{run_id}/tools/{call_id}/resolve", FOUND)
        assert (answer.status, answer.body["code"]) == (status, code)
    live = await client_of(await host_of(scripted(SILENT, AGENT)))
    async with live.start("a") as stream:
        answer = await live.post(f"/tracon/api/runs/{stream.run_id}/tools/c/resolve", FOUND)
        assert (answer.status, answer.body["code"]) == (409, "run_not_ended")


SILENT = "[providers.script.models.m.default]\nsilent = true\n"
AGENT = '[agents.a]\nprovider = "script"\nmodel = "m"\n'


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "$.output"),
        ({"output": 7}, "$.output"),
        ({"output": None}, "$.output"),
        ({"output": "done", "failed": "yes"}, "$.failed"),
        ({"output": "done", "result": "done"}, "$.result"),
        ([], "$"),
    ],
)
async def test_a_resolution_that_is_none_is_refused_by_name(
    host_of: OpenHost, client_of: ClientOf, body: object, field: str
) -> None:
    client, run_id, _ = await interrupted(host_of, client_of)
    answer = await client.post(f"{await uncertain_call(client, run_id)}/resolve", body)
    assert (answer.status, answer.body["code"]) == (400, "bad_body")
    assert [error["field"] for error in answer.body["errors"]] == [field]


@pytest.mark.parametrize(
    "query", ["?state=requested", "?state=lost", "?run_id=7", "?since=yesterday", "?who=me", "?take=x"]
)
async def test_a_filter_that_is_none_is_refused(host_of: OpenHost, client_of: ClientOf, query: str) -> None:
    client = await client_of(await host_of(scripted(SILENT, AGENT)))
    answer = await client.get(f"/tracon/api/tools{query}")
    assert (answer.status, answer.body["code"]) == (400, "bad_query")


async def test_who_operates_may_say_so_and_nobody_of_another_tenant(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    """HTTP-2, HTTP-4."""
    client, run_id, _ = await interrupted(host_of, client_of)
    path = f"{await uncertain_call(client, run_id)}/resolve"
    stranger, reader = await key(client), await key(client, Scope.READ, Scope.RUN, tenant="default")
    assert (await client.post(path, FOUND, **stranger)).status == 404
    assert (await client.post(path, FOUND, **reader)).status == 403
    assert (await client.post(f"/tracon/api/runs/{uuid4()}/tools/c/resolve", FOUND)).status == 404
    await client.views_show("tools")
    assert (await client.get("/tracon/api/tools?state=unknown", **stranger)).body["tool_calls"] == []
    operator = await key(client, Scope.OPERATE, tenant="default")
    assert (await client.post(path, FOUND, **operator)).status == 200


async def test_who_has_seen_what_follows_the_end_has_nothing_to_reconnect_for(
    host_of: OpenHost, client_of: ClientOf
) -> None:
    """HTTP-3: a stream ends with the run, and what was said about it afterwards is among its events."""
    client, run_id, _ = await interrupted(host_of, client_of)
    await client.post(f"{await uncertain_call(client, run_id)}/resolve", FOUND)
    events = await client.events(str(run_id))
    assert [event["type"] for event in events][-4:] == [
        "RunFailed",
        "RunContinuationBlocked",
        "ToolResolved",
        "RunContinued",
    ]
    for seen in events[-4:]:
        headers = {**STREAM, "Last-Event-ID": str(seen["sequence"])}
        answer = await client.request("GET", f"/tracon/api/runs/{run_id}/events", headers=headers)
        assert answer.status == 204
    async with client.watch(str(run_id)) as stream:
        assert "RunFailed" in [frame.event for frame in await stream.rest()]
