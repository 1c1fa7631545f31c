"""Prefer: respond-async: the run is queued, the client is told where to look, and jobs are shown (JOB-1)."""

from typing import Any

from tests.http.client import Answer, Client, Stream
from tests.http.conftest import Hosts
from tests.http.keyed import keyed

ASYNC = {"Prefer": "respond-async"}
RUN = "/tracon/api/agents/echo/run"


async def submit(host: Client, agent: str = "echo", **body: Any) -> Answer:
    path = f"/tracon/api/agents/{agent}/run"
    return await host.post(path, {"message": "hello", **body}, **ASYNC)


async def job(host: Client, run_id: str) -> Any:
    answer = await host.get(f"/tracon/api/jobs/{run_id}")
    assert answer.status == 200, answer.body
    return answer.body


async def ended(host: Client, run_id: str) -> None:
    async with host.watch(run_id) as stream:
        await Stream(stream.response).rest()


async def test_the_answer_names_the_run_before_anything_was_done(hosts: Hosts) -> None:
    """JOB-1: 202, Preference-Applied, Location; the job's id is the run's id."""
    host = await hosts.open(worker=False)
    answer = await submit(host)
    run_id = answer.body["id"]
    assert answer.status == 202
    assert answer.headers["Preference-Applied"] == "respond-async"
    assert answer.headers["Location"] == f"/tracon/api/runs/{run_id}"
    assert answer.headers["X-Run-Id"] == run_id
    assert answer.body["status"] == "Queued"
    run = await host.get(answer.headers["Location"])
    assert run.body == answer.body
    assert (await job(host, run_id))["id"] == run_id


async def test_whoever_watches_sees_the_run_begin_and_end(host: Client) -> None:
    """JOB-1, HTTP-3: a queued run is followed like any other."""
    run_id = (await submit(host)).body["id"]
    async with host.watch(run_id) as stream:
        frames = await stream.rest()
    assert [frame.event for frame in frames][:2] == ["RunCreated", "RunStarted"]
    assert frames[-1].event == "RunCompleted"
    done = await job(host, run_id)
    assert (done["status"], done["error"], done["lease"]) == ("Completed", None, None)
    assert done["queued_at"] <= done["started_at"] <= done["ended_at"]


async def test_a_job_says_who_works_on_it(hosts: Hosts) -> None:
    host = await hosts.open()
    run_id = (await submit(host, "gated")).body["id"]
    await hosts.gate.reached.wait()
    at_work = await job(host, run_id)
    assert at_work["status"] == "Running"
    assert at_work["lease"]["host"] == host.host.bench.host
    assert at_work["lease"]["attempts"] == 1


async def test_the_preference_is_read_as_it_may_be_written(hosts: Hosts) -> None:
    """JOB-1: RFC 7240."""
    host = await hosts.open(worker=False)
    for header in ("Respond-Async", "wait=10, respond-async", "respond-async; x=y", "a=b,respond-async"):
        assert (await host.post(RUN, {"message": "hello"}, Prefer=header)).status == 202, header


async def test_another_preference_changes_nothing(host: Client) -> None:
    answer = await host.post(RUN, {"message": "hello"}, Prefer="wait=10, handling=lenient")
    assert (answer.status, answer.body["status"]) == (200, "Completed")


async def test_lane_priority_and_attempts_are_the_submissions(hosts: Hosts) -> None:
    """JOB-1"""
    host = await hosts.open(worker=False, async_run={"lanes": {"bulk": {}}, "max_attempts": 3})
    plain = await job(host, (await submit(host)).body["id"])
    assert (plain["lane"], plain["priority"], plain["max_attempts"]) == ("default", 0, 3)
    queue = {"lane": "bulk", "priority": -5, "max_attempts": 1}
    chosen = await job(host, (await submit(host, queue=queue)).body["id"])
    assert {name: chosen[name] for name in queue} == queue


async def test_what_no_worker_would_serve_is_refused(host: Client) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"lane": "nowhere"}, "$.queue.lane"),
        ({"lane": "not a name"}, "$.queue.lane"),
        ({"priority": 1001}, "$.queue.priority"),
        ({"max_attempts": 0}, "$.queue.max_attempts"),
        ({"colour": "red"}, "$.queue.colour"),
    ]
    for queue, field in wrong:
        refused = await submit(host, queue=queue)
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, field)


async def test_a_run_that_is_waited_for_is_not_queued(host: Client) -> None:
    refused = await host.post(RUN, {"message": "hello", "queue": {"priority": 1}})
    assert (refused.status, refused.body["errors"][0]["field"]) == (400, "$.queue")


async def test_what_is_wrong_is_told_at_once_and_queues_nothing(host: Client) -> None:
    assert (await host.post("/tracon/api/agents/nobody/run", {"message": "hello"}, **ASYNC)).status == 404
    assert (await submit(host, parameters={"tone": "kind"})).status == 400
    await host.views_show("jobs")
    assert (await host.get("/tracon/api/jobs")).body["jobs"] == []


async def test_a_key_gives_the_same_202_again_whatever_the_run_has_come_to(host: Client) -> None:
    """IDEM-3, JOB-1: byte for byte, with its Location."""
    first = await keyed(host, headers=ASYNC)
    run_id = first.json["id"]
    assert (first.status, first.replayed) == (202, False)
    assert first.headers["Location"] == f"/tracon/api/runs/{run_id}"
    await ended(host, run_id)
    again = await keyed(host, headers=ASYNC)
    assert (again.kept, again.replayed) == (first.kept, True)
    await host.views_show("jobs")
    assert len((await host.get("/tracon/api/jobs")).body["jobs"]) == 1


async def test_a_run_that_waits_is_cancelled(hosts: Hosts) -> None:
    """CANCEL-1"""
    host = await hosts.open(worker=False)
    run_id = (await submit(host)).body["id"]
    assert (await host.post(f"/tracon/api/runs/{run_id}/cancel", {"reason": "no"})).status == 202
    assert (await host.get(f"/tracon/api/runs/{run_id}")).body["status"] == "Cancelled"
    assert (await job(host, run_id))["status"] == "Cancelled"
    assert (await host.post(f"/tracon/api/runs/{run_id}/cancel")).status == 409


async def test_a_host_that_drains_queues_nothing_by_itself(hosts: Hosts) -> None:
    """DRAIN-1: the async way to a run is refused as well."""
    host = await hosts.open()
    host.host.drain.begin()
    refused = await submit(host)
    assert (refused.status, refused.body["code"]) == (503, "draining")
    assert int(refused.headers["Retry-After"]) >= 1


async def test_jobs_are_listed_newest_first_and_filtered(hosts: Hosts) -> None:
    """HTTP-5, HTTP-2"""
    host = await hosts.open(worker=False, async_run={"lanes": {"bulk": {}}})
    plain = (await submit(host)).body["id"]
    bulk = (await submit(host, "story", queue={"lane": "bulk"})).body["id"]
    await host.views_show("jobs")

    async def listed(query: str = "") -> list[str]:
        answer = await host.get(f"/tracon/api/jobs{query}")
        assert answer.status == 200, answer.body
        return [one["id"] for one in answer.body["jobs"]]

    assert await listed() == [bulk, plain]
    assert await listed("?take=1&skip=1") == [plain]
    assert await listed("?lane=bulk") == [bulk]
    assert await listed("?agent=echo&status=Queued") == [plain]
    assert await listed("?status=Running") == []
    assert await listed("?schedule=nightly") == []
    assert (await host.get("/tracon/api/jobs?batch_id=1")).status == 400
    assert (await host.get("/tracon/api/jobs?colour=red")).status == 400


async def test_metrics_say_how_much_waits_and_for_how_long(hosts: Hosts) -> None:
    """JOB-1"""
    host = await hosts.open(worker=False, async_run={"lanes": {"bulk": {}}})
    for _ in range(3):
        await submit(host, queue={"lane": "bulk"})
    await host.views_show("jobs")
    await host.get("/metrics")
    assert host.count("tracon_jobs_waiting", lane="bulk") == 3
    assert host.count("tracon_jobs_waiting", lane="default") == 0
    assert host.count("tracon_job_oldest_seconds", lane="bulk") > 0


async def test_a_run_that_was_begun_at_once_is_no_job(host: Client) -> None:
    run_id = (await host.run("echo")).body["id"]
    answer = await host.get(f"/tracon/api/jobs/{run_id}")
    assert (answer.status, answer.body["code"]) == (404, "job_not_found")


async def test_a_worker_without_the_api_answers_probes_and_nothing_else(hosts: Hosts) -> None:
    """`tracon worker`: it does the work of others' submissions."""
    host, worker = await hosts.open(worker=False), await hosts.open(api=False)
    assert (await worker.get("/health/ready")).status == 200
    assert (await worker.get("/metrics")).status == 200
    assert (await worker.get("/tracon/api/runs")).status == 404
    run_id = (await submit(host)).body["id"]
    await ended(host, run_id)
    assert worker.count("tracon_job_wait_seconds_count", lane="default") == 1
