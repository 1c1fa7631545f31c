"""Batches: many runs in one submission, and how far each of them is (JOB-2)."""

from typing import Any

from tests.http.client import Answer, Client
from tests.http.conftest import Hosts

ITEMS = [
    {"message": "one"},
    {"message": "two", "session_id": "s"},
    {"messages": [{"role": "user", "content": "3"}]},
]


async def submit(host: Client, items: Any = ITEMS, **more: Any) -> Answer:
    return await host.post("/tracon/api/batches", {"agent": "echo", "items": items, **more})


async def test_each_item_has_its_run_and_its_state(host: Client) -> None:
    """JOB-2"""
    answer = await submit(host)
    batch = answer.body
    assert answer.status == 202
    assert answer.headers["Location"] == f"/tracon/api/batches/{batch['id']}"
    assert batch["counts"] == {"Queued": 3}
    assert [item["number"] for item in batch["items"]] == [0, 1, 2]
    answers = []
    for item in batch["items"]:
        async with host.watch(item["run_id"]) as stream:
            answers.append((await stream.rest())[-1].data["data"]["answer"])
    assert answers == ["one", "two", "3"]
    await host.views_show("jobs")
    done = (await host.get(answer.headers["Location"])).body
    assert done["counts"] == {"Completed": 3}
    assert {item["status"] for item in done["items"]} == {"Completed"}


async def test_an_item_that_fails_says_why_and_leaves_the_others_alone(hosts: Hosts) -> None:
    host = await hosts.open()
    batch = (await submit(host, [{"message": "x"}], agent="rejecting")).body
    [item] = batch["items"]
    async with host.watch(item["run_id"]) as stream:
        await stream.rest()
    await host.views_show("jobs")
    [after] = (await host.get(f"/tracon/api/batches/{batch['id']}")).body["items"]
    assert after["status"] == "Failed"
    assert after["error"]


async def test_items_are_there_before_any_worker_has_seen_them(hosts: Hosts) -> None:
    """On any host, from the moment of the 202."""
    host, other = await hosts.open(worker=False), await hosts.open(worker=False)
    batch = (await submit(host)).body
    assert (await other.get(f"/tracon/api/batches/{batch['id']}")).body == batch
    for item in batch["items"]:
        run = (await other.get(f"/tracon/api/runs/{item['run_id']}")).body
        assert run["status"] == "Queued"


async def test_jobs_of_a_batch_can_be_listed_and_name_it(hosts: Hosts) -> None:
    host = await hosts.open(worker=False, async_run={"lanes": {"bulk": {}}})
    batch = (await submit(host, queue={"lane": "bulk", "priority": 2})).body
    await submit(host)
    await host.views_show("jobs")
    jobs = (await host.get(f"/tracon/api/jobs?batch_id={batch['id']}")).body["jobs"]
    assert {job["id"] for job in jobs} == {item["run_id"] for item in batch["items"]}
    assert {(job["lane"], job["priority"]) for job in jobs} == {("bulk", 2)}
    sources = sorted((job["source"] for job in jobs), key=lambda source: source["number"])
    assert sources == [{"kind": "batch", "batch_id": batch["id"], "number": number} for number in range(3)]


async def test_one_item_that_is_wrong_refuses_the_whole_batch(host: Client) -> None:
    """All of it is queued, or nothing."""
    wrong: list[tuple[Any, str]] = [
        ([], "$.items"),
        ([{"message": "x"}] * 1001, "$.items"),
        ([{"message": "x"}, {}], "$.items[1].message"),
        ([{"message": "x"}, {"message": "y", "colour": "red"}], "$.items[1].colour"),
        ([{"message": "x", "session_id": "\x07"}], "$.items[0].session_id"),
        ([{"message": "x"}, {"message": "y", "parameters": {"tone": 1}}], "$.items[1].parameters.tone"),
    ]
    for items, field in wrong:
        refused = await submit(host, items)
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, field)
    await host.views_show("jobs")
    assert (await host.get("/tracon/api/jobs")).body["jobs"] == []


async def test_a_thousand_items_are_one_batch(hosts: Hosts) -> None:
    host = await hosts.open(worker=False)
    batch = (await submit(host, [{"message": "x"}] * 1000)).body
    assert batch["counts"] == {"Queued": 1000}


async def test_what_is_no_batch_and_no_agent_is_not_found(host: Client) -> None:
    for batch_id in ("1", "00000000-0000-0000-0000-000000000001"):
        answer = await host.get(f"/tracon/api/batches/{batch_id}")
        assert (answer.status, answer.body["code"]) == (404, "batch_not_found")
    assert (await host.post("/tracon/api/batches", {"agent": "nobody", "items": ITEMS})).status == 404


async def test_a_host_that_drains_takes_a_batch(hosts: Hosts) -> None:
    """DRAIN-1: a request that only writes jobs is still accepted."""
    host = await hosts.open()
    host.host.drain.begin()
    assert (await submit(host)).status == 202
