"""Workflows in the queue: keys, slots, and runs whose workers are gone (WF-4, IDEM, CANCEL-4, DRAIN)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.supervision.orphans import Orphan
from domain.events import RunEnd
from domain.ids import RunId, run_stream
from tests.http.client import STREAM, Answer, Client, Stream, eventually
from tests.jobs.working import run_out, until_row
from tests.workflows.conftest import Workshop, agent, function, person, sequence
from tests.workflows.test_going_on import RUNS, requests_of
from tests.workflows.test_running import RUN, of_type, run

ASYNC = {"Prefer": "respond-async"}


async def queued(client: Client, **more: Any) -> str:
    answer = await client.post(RUN, {"message": "hello", **more}, **ASYNC)
    assert answer.status == 202, answer.body
    run_id: str = answer.body["id"]
    return run_id


async def ended(client: Client, run_id: str) -> dict[str, Any]:
    """The run, once it has ended."""
    async with client.watch(run_id) as stream:
        await stream.rest()
    record: dict[str, Any] = (await client.get(f"/tracon/api/runs/{run_id}")).body
    return record


async def test_a_queued_workflow_is_run_by_a_worker(workshop: Workshop) -> None:
    """JOB-1"""
    client = await workshop.open(sequence(agent("a"), function("b")))
    answer = await client.post(RUN, {"message": "hello"}, **ASYNC)
    assert (answer.status, answer.headers["Preference-Applied"]) == (202, "respond-async")
    assert answer.headers["Location"] == f"/tracon/api/runs/{answer.body['id']}"
    assert (await ended(client, answer.body["id"]))["status"] == "Completed"


async def test_a_queued_workflow_waits_for_its_person_and_goes_on_in_the_queue(workshop: Workshop) -> None:
    """WF-3"""
    client = await workshop.open(sequence(person("ok"), function("b")))
    run_id = await queued(client)
    assert (await ended(client, run_id))["status"] == "AwaitingInput"
    assert len(await requests_of(client, run_id)) == 1
    answer = await client.post(f"{RUNS}/{run_id}/respond", {"answer": "yes"}, **ASYNC)
    assert answer.status == 202
    assert (await ended(client, answer.body["id"]))["status"] == "Completed"
    job = (await client.get(f"/tracon/api/jobs/{run_id}")).body
    assert job["status"] == "AwaitingInput"


class Keyed:
    """Requests with a key, which must be in the queue (IDEM-1)."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def send(self, path: str, body: Any, key: str = "k", **headers: str) -> Answer:
        sent = {**ASYNC, "Idempotency-Key": key, **headers}
        return await self._client.post(path, body, **{name: value for name, value in sent.items() if value})


@pytest.mark.parametrize("route", ["run", "resume", "respond"])
async def test_a_key_makes_one_run_of_a_request_that_is_sent_again(workshop: Workshop, route: str) -> None:
    """IDEM-1, IDEM-3: status, body, Location and Preference-Applied, byte for byte."""
    client = await workshop.open(sequence(person("ok")), sequence(function("f", "fail"), name="y"))
    path, body = await _a_request(client, route)
    first, again = await Keyed(client).send(path, body), await Keyed(client).send(path, body)
    assert (first.status, again.status) == (202, 202)
    assert first.body == again.body
    for header in ("Location", "Preference-Applied", "Content-Type"):
        assert first.headers[header] == again.headers[header]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers


@pytest.mark.parametrize("route", ["run", "resume", "respond"])
async def test_a_key_is_refused_where_it_cannot_count(workshop: Workshop, route: str) -> None:
    """IDEM-3: every row that refuses."""
    client = await workshop.open(sequence(person("ok")), sequence(function("f", "fail"), name="y"))
    path, body = await _a_request(client, route)
    keyed = Keyed(client)
    without = await keyed.send(path, body, Prefer="")
    assert (without.status, without.body["code"]) == (400, "idempotency_key_invalid")
    assert (await keyed.send(path, body, key="x" * 256)).status == 400
    assert (await keyed.send(path, {**body, "stream": True})).status == 400
    assert (await keyed.send(path, body)).status == 202
    other = await keyed.send("/tracon/api/workflows/w/run", {"message": "another"})
    assert other.status == 422


async def test_a_refused_request_leaves_its_key_free(workshop: Workshop) -> None:
    """IDEM-3: non-2xx."""
    client = await workshop.open(sequence(person("ok")))
    run_id = (await run(client)).body["id"]
    path = f"{RUNS}/{run_id}/respond"
    assert (await Keyed(client).send(path, {"answer": "x", "request_id": "none"})).status == 404
    assert (await Keyed(client).send(path, {"answer": "x"})).status == 202


async def test_a_key_without_the_feature_runs_nothing(workshop: Workshop) -> None:
    """IDEM-3: 501."""
    client = await workshop.open(sequence(function("a")), idempotency={"enabled": False})
    assert (await Keyed(client).send(RUN, {"message": "x"})).status == 501
    assert workshop.calls == []


async def _a_request(client: Client, route: str) -> tuple[str, Any]:
    """A path and a body for each of the routes that take keys."""
    if route == "run":
        return RUN, {"message": "hello"}
    if route == "respond":
        return f"{RUNS}/{(await run(client)).body['id']}/respond", {"answer": "yes"}
    failed = await client.post("/tracon/api/workflows/y/run", {"message": "m"})
    return f"{RUNS}/{failed.body['run']['id']}/resume", {}


@asynccontextmanager
async def watched(client: Client, name: str = "w") -> AsyncIterator[Stream]:
    path = f"/tracon/api/workflows/{name}/run"
    async with client.session.post(path, json={"message": "x"}, headers=STREAM) as response:
        yield Stream(response)


async def test_no_more_workflows_run_than_there_are_places_and_the_others_wait_as_queued(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """WF-1, RECON-2: whoever waits has a heartbeat."""
    client = await workshop.open(
        sequence(function("a", "hold")),
        workflows={"max_concurrent_runs": 1},
        run_reconciliation={"enabled": True, "heartbeat_interval": 0.05},
    )
    async with watched(client) as first, watched(client) as second:
        await first.until("NodeInvoked")
        await eventually(lambda: client.count("tracon_workflows_waiting") == 1)
        waiting = (await client.get(f"/tracon/api/runs/{second.run_id}")).body
        assert waiting["status"] == "Queued"
        await until_row(pool, "SELECT 1 FROM run_heartbeats WHERE run_id = $1", RunId(UUID(second.run_id)))
        workshop.held.let_go.set()
        assert (await second.rest())[-1].event == "RunCompleted"


async def test_a_workflow_that_waits_for_a_place_is_cancelled_like_one_that_runs(workshop: Workshop) -> None:
    """CANCEL-4"""
    client = await workshop.open(sequence(function("a", "hold")), workflows={"max_concurrent_runs": 1})
    async with watched(client) as first, watched(client) as second:
        await first.until("NodeInvoked")
        await eventually(lambda: client.count("tracon_workflows_waiting") == 1)
        assert (await client.post(f"/tracon/api/runs/{second.run_id}/cancel")).status == 202
        seen = [frame.event for frame in await second.rest()]
        assert seen == ["RunCreated", "WorkflowOpened", "RunCancelRequested", "RunCancelled"]
        workshop.held.let_go.set()
        assert (await first.rest())[-1].event == "RunCompleted"


async def test_a_queued_workflow_that_waits_for_a_place_can_be_cancelled_on_any_host(
    workshop: Workshop,
) -> None:
    """CANCEL-4"""
    definition = sequence(function("a", "hold"))
    client = await workshop.open(definition, workflows={"max_concurrent_runs": 1})
    other = await workshop.open(definition, worker=False)
    async with watched(client) as first:
        await first.until("NodeInvoked")
        run_id = await queued(client)
        await eventually(lambda: client.count("tracon_workflows_waiting") == 1)
        assert (await other.post(f"/tracon/api/runs/{run_id}/cancel")).status == 202
        assert (await ended(other, run_id))["status"] == "Cancelled"
        await eventually(lambda: client.count("tracon_workflows_waiting") == 0)
        workshop.held.let_go.set()


async def test_a_host_that_drains_starts_no_workflow_resumes_none_and_takes_no_answer(
    workshop: Workshop,
) -> None:
    """DRAIN-1: with respond-async too."""
    client = await workshop.open(sequence(person("ok")), drain={"enabled": True})
    run_id = (await run(client)).body["id"]
    client.host.drain.begin()
    bodies = {
        RUN: {"message": "x"},
        f"{RUNS}/{run_id}/respond": {"answer": "x"},
        f"{RUNS}/{run_id}/resume": {},
    }
    for path, body in bodies.items():
        for headers in ({}, ASYNC):
            answer = await client.post(path, body, **headers)
            assert (answer.status, answer.body["code"]) == (503, "draining")
            assert "Retry-After" in answer.headers


RESUMING = {"resume_interrupted_runs": True, "max_resume_attempts": 1}


async def lost_in_its_second_step(workshop: Workshop, pool: asyncpg.Pool, client: Client) -> str:
    """A queued run whose worker has it no longer: its lease ran out while it was in `hold`."""
    run_id = await queued(client)
    await workshop.held.reached.wait()
    workshop.held.reached.clear()
    await run_out(pool)
    return run_id


async def test_the_job_of_an_interrupted_run_goes_on_from_its_latest_checkpoint(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """WF-4"""
    client = await workshop.open(
        sequence(function("a"), function("b", "hold"), function("c")), workflows=RESUMING
    )
    first = await lost_in_its_second_step(workshop, pool, client)
    record = await ended(client, first)
    assert (record["status"], record["error_type"]) == ("Failed", "interrupted")
    second = record["continued_by_run_id"]
    await workshop.held.reached.wait()
    workshop.held.let_go.set()
    after = await ended(client, second)
    assert (after["status"], after["continued_from_run_id"]) == ("Completed", first)
    assert [call.node for call in workshop.calls] == ["a", "c"]


async def test_an_agent_that_was_cut_off_does_not_do_again_what_its_tools_had_done(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """WF-4, TOOL-1: it is run again, from where the interrupted child run was."""
    client = await workshop.open(sequence(function("a"), agent("b", "paying")), workflows=RESUMING)
    first = await lost_in_its_second_step(workshop, pool, client)
    second = (await ended(client, first))["continued_by_run_id"]
    await workshop.held.reached.wait()
    workshop.held.let_go.set()
    assert (await ended(client, second))["status"] == "Completed"
    assert len(workshop.paid) == 1
    [interrupted] = of_type(await client.events(first), "ChildRunStarted")
    [child] = of_type(await client.events(second), "ChildRunStarted")
    record = (await client.get(f"/tracon/api/runs/{child['run_id']}")).body
    assert record["continued_from_run_id"] == interrupted["run_id"]
    events = await client.events(child["run_id"])
    assert [one["output"] for one in of_type(events, "ToolAnswered")] == ["paid"]


async def test_a_job_goes_on_so_often_and_its_last_attempt_closes_the_chain(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """WF-4: two more attempts than `max_resume_attempts`."""
    client = await workshop.open(sequence(function("a"), function("b", "hold")), workflows=RESUMING)
    first = await lost_in_its_second_step(workshop, pool, client)
    assert (await client.get(f"/tracon/api/jobs/{first}")).body["max_attempts"] == 3
    second = (await ended(client, first))["continued_by_run_id"]
    await workshop.held.reached.wait()
    await run_out(pool)
    record = await ended(client, second)
    assert (record["error_type"], record["continued_by_run_id"]) == ("interrupted", None)
    assert "workflows.max_resume_attempts" in record["error"]
    assert (await client.get(f"/tracon/api/jobs/{second}")).body["max_attempts"] == 2


async def test_without_the_setting_an_interrupted_run_is_given_up(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """WF-4, JOB-1"""
    client = await workshop.open(sequence(function("a"), function("b", "hold")))
    run_id = await lost_in_its_second_step(workshop, pool, client)
    await until_row(pool, "SELECT 1 FROM jobs WHERE error = 'tracon.job.attempts-exhausted'")
    record = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (record["status"], record["continued_by_run_id"]) == ("Running", None)


async def test_a_run_bound_to_a_connection_is_not_resumed_by_itself(workshop: Workshop) -> None:
    """WF-4"""
    client = await workshop.open(sequence(function("a", "hold")), workflows=RESUMING)
    async with watched(client) as stream:
        await stream.until("NodeInvoked")
        run_id = RunId(UUID(stream.run_id))
        recovery = client.host.orphans.on_orphaned[0]
        await recovery(run_id)
        events = await client.host.services.log.read_stream(run_stream(run_id))
        assert not any(isinstance(one.event, RunEnd) for one in events)
        workshop.held.let_go.set()


async def test_a_run_that_waits_for_a_person_is_not_run_again(workshop: Workshop) -> None:
    """WF-4"""
    client = await workshop.open(sequence(person("ok")), workflows=RESUMING)
    run_id = await queued(client)
    before = await ended(client, run_id)
    await client.host.orphans.on_orphaned[0](RunId(UUID(run_id)))
    assert (await client.get(f"/tracon/api/runs/{run_id}")).body == before


async def test_one_that_was_cancelled_before_its_worker_was_gone_ends_as_cancelled(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """WF-4, CANCEL-1"""
    client = await workshop.open(sequence(function("a"), function("b", "hold")), workflows=RESUMING)
    run_id = await queued(client)
    await workshop.held.reached.wait()
    await pool.execute(
        "INSERT INTO cancel_requests (run_id, host_id, reason) VALUES ($1, 'gone', 'enough')",
        RunId(UUID(run_id)),
    )
    await run_out(pool)
    record = await ended(client, run_id)
    assert (record["status"], record["continued_by_run_id"]) == ("Cancelled", None)


async def test_a_workflow_run_that_was_orphaned_names_how_it_is_resumed(workshop: Workshop) -> None:
    """CONT-4"""
    client = await workshop.open(
        sequence(function("a", "hold")),
        run_reconciliation={"enabled": True},
        run_continuation={"enabled": True},
    )
    async with watched(client) as stream:
        await stream.until("NodeInvoked")
        run_id = RunId(UUID(stream.run_id))
        orphan = Orphan(run_id=run_id, host="gone", silent_for_s=None)
        history = (await client.host.orphans.histories([run_id]))[run_id]
        assert await client.host.orphans.close(orphan, history)
        assert await client.host.orphans.announce(run_id)
    blocked = (await client.events(str(run_id)))[-1]
    assert blocked["type"] == "RunContinuationBlocked"
    assert blocked["data"]["remedy"] == f"POST /api/workflows/runs/{run_id}/resume"


async def test_a_run_that_reconciliation_has_closed_is_gone_on_with_too(workshop: Workshop) -> None:
    """WF-4: and its old host, if it lives after all, has no further effect for it (EVENT-3)."""
    client = await workshop.open(
        sequence(function("a"), function("b", "hold"), function("c")), workflows=RESUMING
    )
    first = await queued(client)
    await workshop.held.reached.wait()
    run_id, orphans = RunId(UUID(first)), client.host.orphans
    history = (await orphans.histories([run_id]))[run_id]
    assert await orphans.close(Orphan(run_id=run_id, host="gone", silent_for_s=None), history)
    assert await orphans.announce(run_id)
    workshop.held.let_go.set()
    record = (await client.get(f"/tracon/api/runs/{first}")).body
    assert record["error_type"] == "orphaned"
    assert (await ended(client, record["continued_by_run_id"]))["status"] == "Completed"
    assert [call.node for call in workshop.calls] == ["a", "c"]


async def test_without_resumes_the_jobs_second_attempt_closes_the_run(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """WF-4: `max_resume_attempts` may be 0."""
    client = await workshop.open(
        sequence(function("a"), function("b", "hold")), workflows={**RESUMING, "max_resume_attempts": 0}
    )
    run_id = await lost_in_its_second_step(workshop, pool, client)
    record = await ended(client, run_id)
    assert (record["error_type"], record["continued_by_run_id"]) == ("interrupted", None)
