"""What a run that waits for an approval is to a key, and to clients of OpenAI's APIs."""

from uuid import UUID

import pytest

from domain.ids import RunId
from tests.hosts import OpenHost
from tests.http.approving import Desk, gone_on, settings
from tests.http.client import Client
from tests.http.interrupted import ClientOf
from tests.http.interrupted import client_of as client_of


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def client(host_of: OpenHost, client_of: ClientOf, desk: Desk) -> Client:
    return await client_of(await host_of(settings(), tools=desk.tools()))


async def test_a_key_is_answered_with_the_run_that_waits(client: Client, desk: Desk) -> None:
    """IDEM-3: 202 is a success, and is given again whatever was decided meanwhile."""
    keyed = {"Idempotency-Key": "refund-7"}
    path, body = "/tracon/api/agents/once/run", {"message": "refund"}
    first = await client.post(path, body, **keyed)
    assert (first.status, first.body["status"]) == (202, "AwaitingApproval")
    again = await client.post(path, body, **keyed)
    assert (again.status, again.headers["Idempotency-Replayed"]) == (202, "true")
    assert again.body == first.body
    await gone_on(client, RunId(UUID(first.body["id"])))
    assert (await client.post(path, body, **keyed)).body == first.body
    assert desk.ran == {"refund": 1}


async def test_a_completion_that_waits_is_an_error_and_its_key_waits_with_it(
    client: Client, desk: Desk
) -> None:
    """IDEM-5: on OpenAI's APIs a run that waits is no answer; the run that goes on has it."""
    keyed = {"Idempotency-Key": "k"}
    path = "/tracon/v1/chat/completions"
    body = {"model": "once", "messages": [{"role": "user", "content": "refund"}]}
    first = await client.post(path, body, **keyed)
    assert (first.status, first.body["error"]["code"]) == (409, "run_awaits_a_person")
    assert first.headers["X-Should-Retry"] == "false"
    run_id = RunId(UUID(first.headers["X-Run-Id"]))
    again = await client.post(path, body, **keyed)
    assert (again.status, again.body["error"]["code"]) == (409, "idempotency_key_in_progress")
    await gone_on(client, run_id)
    answered = await client.post(path, body, **keyed)
    assert answered.status == 200, answered.body
    assert answered.body["choices"][0]["message"]["content"] == "It says: refunded 7"
    assert desk.ran == {"refund": 1}


async def test_a_key_is_free_when_nobody_will_answer(client: Client, desk: Desk) -> None:
    """IDEM-5"""
    body = {"model": "once", "messages": [{"role": "user", "content": "refund"}]}
    first = await client.post("/tracon/v1/chat/completions", body, **{"Idempotency-Key": "k"})
    await client.post(f"/tracon/api/runs/{first.headers['X-Run-Id']}/cancel")
    second = await client.post("/tracon/v1/chat/completions", body, **{"Idempotency-Key": "k"})
    assert second.body["error"]["code"] == "run_awaits_a_person"
    assert second.headers["X-Run-Id"] != first.headers["X-Run-Id"]


async def test_a_streamed_completion_that_waits_does_not_look_done(client: Client) -> None:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "refund"}]}
    async with client.session.post("/tracon/v1/chat/completions", json=body) as response:
        told = (await response.read()).decode()
    assert "run_awaits_a_person" in told
    assert "[DONE]" not in told
    assert '"finish_reason":"stop"' not in told


async def test_a_response_that_waits_is_incomplete(client: Client) -> None:
    streamed = {"model": "m", "input": "refund", "stream": True}
    async with client.session.post("/tracon/v1/responses", json=streamed) as response:
        told = (await response.read()).decode()
        run_id = response.headers["X-Run-Id"]
    assert "event: response.incomplete" in told
    refused = await client.post("/tracon/v1/responses", {"model": "once", "input": "refund"})
    assert (refused.status, refused.body["error"]["code"]) == (409, "run_awaits_a_person")
    read = await client.get(f"/tracon/v1/responses/resp_{UUID(run_id).hex}")
    assert (read.body["status"], read.body["incomplete_details"]) == (
        "incomplete",
        {"reason": "awaiting_person"},
    )
    more = {"model": "once", "input": "more", "previous_response_id": read.body["id"]}
    assert (await client.post("/tracon/v1/responses", more)).status == 409
