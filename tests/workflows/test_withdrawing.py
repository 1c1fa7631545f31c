"""A run that waits for a person's answer, and is not wanted any more."""

from tests.workflows.conftest import Workshop, function, person, sequence
from tests.workflows.test_going_on import requests_of, respond
from tests.workflows.test_running import run


async def test_a_run_that_waits_for_an_answer_is_withdrawn_by_its_cancel(workshop: Workshop) -> None:
    """CANCEL-1, WF-3: it asks nobody any more, and nobody can answer it."""
    client = await workshop.open(sequence(person("ok"), function("b")))
    run_id = (await run(client)).body["id"]
    cancelled = await client.post(f"/tracon/api/runs/{run_id}/cancel", {"reason": "not needed"})
    assert cancelled.status == 202
    record = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (record["status"], record["wait_over"]) == ("AwaitingInput", "withdrawn")
    assert await requests_of(client, run_id) == []
    late = await respond(client, run_id, "yes")
    assert late.status == 409
    again = await client.post(f"/tracon/api/runs/{run_id}/cancel")
    assert (again.status, again.body["code"]) == (409, "run_already_ended")


async def test_an_answered_run_cannot_be_withdrawn(workshop: Workshop) -> None:
    client = await workshop.open(sequence(person("ok"), function("b")))
    run_id = (await run(client)).body["id"]
    assert (await respond(client, run_id, "yes")).body["status"] == "Completed"
    refused = await client.post(f"/tracon/api/runs/{run_id}/cancel")
    assert (refused.status, refused.body["code"]) == (409, "run_already_ended")
