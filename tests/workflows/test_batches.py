"""Batches of workflows (JOB-2, WF-4)."""

from typing import Any

import asyncpg

from tests.http.client import Answer, Client
from tests.jobs.working import run_out
from tests.workflows.conftest import Workshop, function, sequence
from tests.workflows.test_queue import RESUMING, ended

BATCHES = "/tracon/api/batches"


async def batch(client: Client, *messages: str, **more: Any) -> Answer:
    items = [{"message": message} for message in messages]
    return await client.post(BATCHES, {"workflow": "w", "items": items, **more})


async def test_every_item_is_a_run_of_the_workflow(workshop: Workshop) -> None:
    """JOB-2"""
    client = await workshop.open(sequence(function("a")))
    answer = await batch(client, "one", "two")
    assert answer.status == 202
    runs = [await ended(client, item["run_id"]) for item in answer.body["items"]]
    assert [(run["kind"], run["status"]) for run in runs] == [("workflow", "Completed")] * 2
    assert sorted(workshop.given) == ["one", "two"]
    await client.views_show("jobs")
    counts = (await client.get(f"{BATCHES}/{answer.body['id']}")).body["counts"]
    assert counts == {"Completed": 2}


async def test_an_item_that_is_interrupted_is_gone_on_with_and_is_the_same_item(
    workshop: Workshop, pool: asyncpg.Pool
) -> None:
    """WF-4, JOB-2"""
    client = await workshop.open(sequence(function("a"), function("b", "hold")), workflows=RESUMING)
    created = (await batch(client, "one")).body
    first = created["items"][0]["run_id"]
    await workshop.held.reached.wait()
    await run_out(pool)
    second = (await ended(client, first))["continued_by_run_id"]
    workshop.held.let_go.set()
    assert (await ended(client, second))["status"] == "Completed"
    await client.views_show("jobs")
    [item] = (await client.get(f"{BATCHES}/{created['id']}")).body["items"]
    assert (item["number"], item["run_id"], item["status"]) == (0, second, "Completed")
    assert [call.node for call in workshop.calls] == ["a"]


async def test_what_a_workflow_cannot_be_given_is_refused_and_nothing_runs(workshop: Workshop) -> None:
    client = await workshop.open(sequence(function("a")))
    item = {"message": "x", "parameters": {"tone": "dry"}}
    refused = await client.post(BATCHES, {"workflow": "w", "items": [{"message": "y"}, item]})
    assert (refused.status, refused.body["code"]) == (400, "bad_item")
    assert refused.body["errors"][0]["field"] == "$.items[1].parameters.tone"
    assert (await batch(client, "x", workflow="none")).status == 404
    assert (await batch(client, "x", agent="echo")).status == 400
    assert (await client.post(BATCHES, {"items": [item]})).status == 400
    assert workshop.calls == []
