"""Schedules over HTTP: defined, changed, paused, triggered and removed (JOB-2)."""

from datetime import UTC, datetime
from typing import Any

from tests.http.client import Answer, Client
from tests.http.conftest import Hosts

NIGHTLY = {
    "name": "nightly",
    "cron": "30 2 * * *",
    "time_zone": "Europe/Berlin",
    "agent": "echo",
    "message": "good night",
}
PATH = "/tracon/api/schedules"


async def create(host: Client, **more: Any) -> Answer:
    return await host.post(PATH, {**NIGHTLY, **more})


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in NIGHTLY.items() if key != name}


async def test_a_schedule_is_what_it_was_defined_as_and_knows_its_next_time(host: Client) -> None:
    """JOB-2"""
    answer = await create(host, missed="skip", queue={"priority": 4}, parameters={}, session_id="s")
    assert answer.status == 201
    assert answer.headers["Location"] == f"{PATH}/nightly"
    definition = answer.body["definition"]
    assert definition["cron"] == "30 2 * * *"
    assert definition["input"] == [{"role": "user", "content": "good night"}]
    assert (definition["missed"], definition["queue"]["priority"]) == ("skip", 4)
    due = datetime.fromisoformat(answer.body["next_due"])
    assert due > datetime.now(UTC)
    assert (await host.get(f"{PATH}/nightly")).body == answer.body


async def test_a_name_is_taken_once(host: Client) -> None:
    await create(host)
    again = await create(host, cron="0 5 * * *")
    assert (again.status, again.body["code"]) == (409, "schedule_exists")
    assert (await host.get(f"{PATH}/nightly")).body["definition"]["cron"] == "30 2 * * *"


async def test_a_schedule_is_defined_anew(host: Client) -> None:
    before = (await create(host)).body
    answer = await host.request("PUT", f"{PATH}/nightly", json={**without("name"), "cron": "0 5 * * 1"})
    assert answer.status == 200, answer.body
    assert answer.body["definition"]["cron"] == "0 5 * * 1"
    assert answer.body["created_at"] == before["created_at"] < answer.body["updated_at"]
    unknown = await host.request("PUT", f"{PATH}/weekly", json=without("name"))
    assert (unknown.status, unknown.body["code"]) == (404, "schedule_not_found")


async def test_a_paused_schedule_says_so_and_goes_on_when_resumed(host: Client) -> None:
    await create(host)
    assert (await host.post(f"{PATH}/nightly/pause")).body["paused"] is True
    assert (await host.post(f"{PATH}/nightly/pause")).status == 200
    resumed = (await host.post(f"{PATH}/nightly/resume")).body
    assert (resumed["paused"], resumed["next_due"] is not None) == (False, True)


async def test_a_removed_schedule_is_gone_and_its_name_is_free(host: Client) -> None:
    await create(host)
    assert (await host.request("DELETE", f"{PATH}/nightly")).status == 200
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/trigger")):
        assert (await host.request(method, f"{PATH}/nightly{path}")).status == 404
    assert (await create(host)).status == 201


async def test_a_run_can_be_had_out_of_turn(host: Client) -> None:
    """JOB-2"""
    await create(host)
    answer = await host.post(f"{PATH}/nightly/trigger")
    run_id = answer.body["id"]
    assert answer.status == 202
    assert answer.headers["Location"] == f"/tracon/api/runs/{run_id}"
    async with host.watch(run_id) as stream:
        assert (await stream.rest())[-1].data["data"]["answer"] == "good night"
    assert (await host.get(f"{PATH}/nightly")).body["last_run_id"] == run_id
    await host.views_show("jobs")
    [job] = (await host.get("/tracon/api/jobs?schedule=nightly")).body["jobs"]
    assert (job["id"], job["source"]) == (run_id, {"kind": "schedule", "schedule": "nightly", "due": None})


async def test_a_host_that_drains_still_takes_it(hosts: Hosts) -> None:
    """DRAIN-1: a request that only writes a job is still accepted."""
    host = await hosts.open()
    await create(host)
    host.host.drain.begin()
    assert (await host.post(f"{PATH}/nightly/trigger")).status == 202


async def test_schedules_are_listed_by_name(host: Client) -> None:
    for name in ("b", "c", "a"):
        await create(host, name=name)
    await host.views_show("schedules")
    page = (await host.get(f"{PATH}?take=2")).body
    assert [one["definition"]["name"] for one in page["schedules"]] == ["a", "b"]
    assert page["more"] is True


async def test_what_could_never_run_is_refused(host: Client) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"cron": "61 * * * *"}, "$.cron"),
        ({"cron": "* * * * * *"}, "$.cron"),
        ({"time_zone": "Mars/Olympus"}, "$.time_zone"),
        ({"name": "no name"}, "$.name"),
        ({"missed": "panic"}, "$.missed"),
        ({"message": " "}, "$.message"),
        ({"parameters": {"tone": "kind"}}, "$.parameters.tone"),
        ({"queue": {"lane": "nowhere"}}, "$.queue.lane"),
    ]
    for change, field in wrong:
        refused = await create(host, **change)
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, field)
    assert (await create(host, agent="nobody")).status == 404
