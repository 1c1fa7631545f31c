"""Runs that go on from others: with a person's answer, from a checkpoint, on any host (WF-2, WF-3)."""

import asyncio
from typing import Any

import asyncpg

from app.keys.key import Scope
from tests.http.client import STREAM, Answer, Client, Stream
from tests.workflows.conftest import Workshop, agent, function, person, sequence
from tests.workflows.test_running import of_type, run

RUNS = "/tracon/api/workflows/runs"


async def requests_of(client: Client, run_id: str) -> list[dict[str, Any]]:
    answer = await client.get(f"{RUNS}/{run_id}/requests")
    assert answer.status == 200, answer.body
    asked: list[dict[str, Any]] = answer.body["requests"]
    return asked


async def respond(client: Client, run_id: str, answer: str, **more: Any) -> Answer:
    return await client.post(f"{RUNS}/{run_id}/respond", {"answer": answer, **more})


async def resume(client: Client, run_id: str, **more: Any) -> Answer:
    return await client.post(f"{RUNS}/{run_id}/resume", more or None)


async def test_a_run_that_asks_a_person_waits_and_the_answer_opens_the_next_one(workshop: Workshop) -> None:
    """WF-3"""
    client = await workshop.open(sequence(agent("a"), person("ok", "Send {{ a }}?"), function("b")))
    asking = await run(client)
    assert (asking.status, asking.body["status"], asking.body["answer"]) == (202, "AwaitingInput", None)
    run_id = asking.body["id"]
    [request] = await requests_of(client, run_id)
    assert (request["node"], request["prompt"]) == ("ok", "Send echo of hello?")
    after = await respond(client, run_id, "yes", request_id=request["id"])
    assert (after.body["status"], after.body["answer"]) == ("Completed", "noted yes")
    assert after.body["continued_from_run_id"] == run_id
    assert (await client.get(f"/tracon/api/runs/{run_id}")).body["continued_by_run_id"] == after.body["id"]
    assert len(of_type(await client.events(after.body["id"]), "ChildRunStarted")) == 0


async def test_an_answered_request_is_not_listed_again(workshop: Workshop) -> None:
    """WF-3"""
    client = await workshop.open(sequence(person("ok"), person("sure")))
    first = (await run(client)).body["id"]
    second = (await respond(client, first, "yes")).body
    assert await requests_of(client, first) == []
    assert second["status"] == "AwaitingInput"
    assert [one["node"] for one in await requests_of(client, second["id"])] == ["sure"]
    assert (await respond(client, second["id"], "very")).body["answer"] == "very"
    assert await requests_of(client, second["id"]) == []


async def test_of_two_answers_at_once_one_opens_a_run(workshop: Workshop) -> None:
    """WF-3: on two hosts."""
    first = await workshop.open(sequence(person("ok"), function("b")))
    second = await workshop.open(sequence(person("ok"), function("b")))
    for _ in range(5):
        run_id = (await run(first)).body["id"]
        answers = await asyncio.gather(respond(first, run_id, "yes"), respond(second, run_id, "no"))
        assert sorted(answer.status for answer in answers) == [200, 409]
        refused = next(answer for answer in answers if answer.status == 409)
        assert refused.body["code"] == "already_continued"
    assert len(workshop.calls) == 5


async def test_an_answer_must_be_one_of_those_that_are_allowed(workshop: Workshop) -> None:
    client = await workshop.open(sequence(person("ok", answers=["yes", "no"])))
    run_id = (await run(client)).body["id"]
    [request] = await requests_of(client, run_id)
    assert request["schema"] == {"type": "string", "enum": ["yes", "no"]}
    refused = await respond(client, run_id, "perhaps")
    assert (refused.status, refused.body["code"]) == (400, "answer_not_allowed")
    assert (await respond(client, run_id, "no")).body["answer"] == "no"


async def test_what_nobody_asked_cannot_be_answered(workshop: Workshop) -> None:
    client = await workshop.open(sequence(person("ok")), {**sequence(agent("a")), "name": "other"})
    run_id = (await run(client)).body["id"]
    unknown = await respond(client, run_id, "yes", request_id="another")
    assert (unknown.status, unknown.body["code"]) == (404, "request_not_found")
    done = (await client.post("/tracon/api/workflows/other/run", {"message": "x"})).body["id"]
    assert (await respond(client, done, "yes")).status == 404


async def test_a_run_of_an_agent_is_no_workflow(workshop: Workshop) -> None:
    client = await workshop.open(sequence(agent("a")))
    run_id = (await client.run("echo")).body["id"]
    answers = [
        await respond(client, run_id, "yes"),
        await resume(client, run_id),
        await client.get(f"{RUNS}/{run_id}/requests"),
        await client.get(f"{RUNS}/{run_id}/checkpoints"),
    ]
    assert {(answer.status, answer.body["code"]) for answer in answers} == {(400, "not_a_workflow")}


async def test_a_run_that_failed_is_resumed_after_its_last_finished_super_step(workshop: Workshop) -> None:
    """WF-2"""
    client = await workshop.open(sequence(agent("a"), function("b", "fail"), function("c")))
    failed = (await run(client)).body["run"]["id"]
    again = await resume(client, failed)
    assert again.status == 500
    assert [call.node for call in workshop.calls] == ["b", "b"]
    assert len({call.call_key for call in workshop.calls}) == 1
    record = (await client.get(f"/tracon/api/runs/{again.body['run']['id']}")).body
    assert record["continued_from_run_id"] == failed
    [opened] = of_type(await client.events(record["id"]), "WorkflowOpened")
    assert opened["from_checkpoint"] == f"{failed}:1"


async def test_a_cancelled_run_can_be_resumed(workshop: Workshop) -> None:
    """WF-2"""
    client = await workshop.open(sequence(function("a"), function("b", "hold")))
    path = "/tracon/api/workflows/w/run"
    async with client.session.post(path, json={"message": "x"}, headers=STREAM) as response:
        stream = Stream(response)
        await workshop.held.reached.wait()
        await client.post(f"/tracon/api/runs/{stream.run_id}/cancel")
        assert (await stream.rest())[-1].event == "RunCancelled"
    workshop.held.let_go.set()
    assert (await resume(client, stream.run_id)).body["answer"] == "through"
    assert [call.node for call in workshop.calls] == ["a"]


async def test_a_run_is_resumed_from_the_checkpoint_that_is_named(workshop: Workshop) -> None:
    """WF-2: also one of a run before it."""
    client = await workshop.open(sequence(function("a"), function("b"), function("c", "fail")))
    first = (await run(client)).body["run"]["id"]
    second = (await resume(client, first)).body["run"]["id"]
    listed = (await client.get(f"{RUNS}/{second}/checkpoints")).body["checkpoints"]
    assert [one["id"] for one in listed] == [f"{first}:1", f"{first}:2"]
    workshop.calls.clear()
    await resume(client, second, checkpoint=f"{first}:1")
    assert [call.node for call in workshop.calls] == ["b", "c"]


async def test_a_checkpoint_that_is_not_there_is_not_found(workshop: Workshop) -> None:
    client = await workshop.open(sequence(function("a", "fail")))
    failed = (await run(client)).body["run"]["id"]
    answer = await resume(client, failed, checkpoint="nowhere:1")
    assert (answer.status, answer.body["code"]) == (404, "checkpoint_not_found")


async def test_there_is_nothing_to_resume_of_a_run_that_is_done_or_waits_or_was_resumed(
    workshop: Workshop,
) -> None:
    client = await workshop.open(
        sequence(person("ok")), sequence(agent("a"), name="x"), sequence(function("f", "fail"), name="y")
    )
    waits = (await run(client)).body["id"]
    done = (await client.post("/tracon/api/workflows/x/run", {"message": "m"})).body["id"]
    failed = (await client.post("/tracon/api/workflows/y/run", {"message": "m"})).body["run"]["id"]
    await resume(client, failed)
    refused = [await resume(client, one) for one in (waits, done, failed)]
    assert [(answer.status, answer.body["code"]) for answer in refused] == [
        (409, "nothing_to_resume"),
        (409, "nothing_to_resume"),
        (409, "already_continued"),
    ]
    assert f"/api/workflows/runs/{waits}/respond" in refused[0].body["detail"]


async def test_a_live_run_is_not_resumed(workshop: Workshop) -> None:
    client = await workshop.open(sequence(function("b", "hold")))
    path = "/tracon/api/workflows/w/run"
    async with client.session.post(path, json={"message": "x"}, headers=STREAM) as response:
        stream = Stream(response)
        await workshop.held.reached.wait()
        answer = await resume(client, stream.run_id)
        assert (answer.status, answer.body["code"]) == (409, "run_not_ended")
        workshop.held.let_go.set()


async def test_another_tenants_run_is_not_found(workshop: Workshop) -> None:
    """HTTP-2"""
    client = await workshop.open(sequence(person("ok")))
    run_id = (await run(client)).body["id"]
    _, secret = await client.host.services.keys.create("beta", "k", (Scope.READ, Scope.RUN))
    headers = {"Authorization": f"Bearer {secret}"}
    answers = [
        await client.post(f"{RUNS}/{run_id}/respond", {"answer": "x"}, **headers),
        await client.post(f"{RUNS}/{run_id}/resume", **headers),
        await client.get(f"{RUNS}/{run_id}/requests", **headers),
        await client.get(f"{RUNS}/{run_id}/checkpoints", **headers),
    ]
    assert {(answer.status, answer.body["code"]) for answer in answers} == {(404, "run_not_found")}


async def test_the_run_that_goes_on_can_be_watched(workshop: Workshop) -> None:
    """HTTP-3"""
    client = await workshop.open(sequence(person("ok"), function("b")))
    run_id = (await run(client)).body["id"]
    path = f"{RUNS}/{run_id}/respond"
    async with client.session.post(path, json={"answer": "yes"}, headers=STREAM) as response:
        frames = await Stream(response).rest()
    assert (frames[0].event, frames[-1].event) == ("RunCreated", "RunCompleted")


async def test_what_was_answered_and_by_which_run_is_on_record(workshop: Workshop) -> None:
    client = await workshop.open(sequence(person("ok")))
    run_id = (await run(client)).body["id"]
    after = (await respond(client, run_id, "yes")).body["id"]
    events = await client.events(run_id)
    assert [event["type"] for event in events[-3:]] == ["RunAwaitingInput", "InputAnswered", "RunContinued"]
    assert events[-2]["data"]["answer"] == "yes"
    assert events[-1]["data"]["by"] == after


async def test_a_question_that_was_withdrawn_is_asked_no_more(workshop: Workshop) -> None:
    """WF-3: a cancel of a run that waits."""
    client = await workshop.open(sequence(person("ok"), function("b")))
    run_id = (await run(client)).body["id"]
    assert (await client.post(f"/tracon/api/runs/{run_id}/cancel")).status == 202
    assert await requests_of(client, run_id) == []
    late = await respond(client, run_id, "yes")
    assert (late.status, late.body["code"]) == (409, "wait_is_over")
    resumed = await resume(client, run_id)
    assert (resumed.status, resumed.body["code"]) == (409, "wait_is_over"), "and nobody is sent to answer"
    assert workshop.calls == []


async def test_who_answers_after_an_accepted_cancel_comes_too_late(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """CANCEL-1: the run's host, now gone, had not read that it was cancelled before it came to wait."""
    client = await workshop.open(sequence(person("ok"), function("b")))
    run_id = (await run(client)).body["id"]
    left = "INSERT INTO cancel_requests (run_id, host_id, reason) VALUES ($1, 'gone', 'enough')"
    await pool.execute(left, run_id)
    late = await respond(client, run_id, "yes")
    assert (late.status, late.body["code"]) == (409, "wait_is_over")
    [ended] = of_type(await client.events(run_id), "RunWaitEnded")
    assert (ended["cause"], ended["reason"]) == ("withdrawn", "enough")
    assert workshop.calls == []
