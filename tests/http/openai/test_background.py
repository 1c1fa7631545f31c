"""Responses in the background: left to a worker, and looked at later."""

from typing import Any

import openai
import pytest

from tests.http.openai.conftest import Host, Service

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def last_of(host: Host, response_id: str) -> Any:
    """Its last event, when it has come."""
    return [event async for event in await host.ai.responses.retrieve(response_id, stream=True)][-1]


async def test_a_response_in_the_background_is_queued_at_first(service: Service) -> None:
    """JOB-1: and a job by the same id."""
    host = await service.open(worker=False)
    queued = await host.ai.responses.create(model="helper", input="Well?", background=True)
    assert (queued.status, queued.background, queued.output, queued.usage) == ("queued", True, [], None)
    assert await host.ai.responses.retrieve(queued.id) == queued
    await host.http.views_show("jobs")
    job = await host.http.get(f"/tracon/api/jobs/{queued.id.removeprefix('resp_')}")
    assert job.body["status"] == "Queued"


async def test_a_worker_brings_it_to_its_end(service: Service) -> None:
    """JOB-1"""
    host = await service.open()
    queued = await host.ai.responses.create(model="helper", input="Well?", background=True)
    last = await last_of(host, queued.id)
    assert last.type == "response.completed"
    done = await host.ai.responses.retrieve(queued.id)
    assert done == last.response
    assert done.output_text == "Let me look.It is raining."
    assert (done.id, done.created_at, done.background) == (queued.id, queued.created_at, True)


async def test_it_can_be_watched_from_the_beginning(service: Service) -> None:
    host = await service.open()
    stream = await host.ai.responses.create(model="slow", input="Well?", background=True, stream=True)
    events: list[Any] = [event async for event in stream]
    assert [event.type for event in events[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    assert [event.response.status for event in events[:3]] == ["queued", "queued", "in_progress"]
    assert events[-1].response.output_text == "One two three four five six."
    again = await host.ai.responses.retrieve(events[0].response.id, stream=True, starting_after=1)
    assert [event async for event in again] == events[2:]


async def test_it_can_be_cancelled_before_anybody_takes_it(service: Service) -> None:
    """CANCEL-1"""
    host = await service.open(worker=False)
    queued = await host.ai.responses.create(model="echo", input="hi", background=True)
    assert (await host.ai.responses.cancel(queued.id)).status == "cancelled"
    assert (await host.ai.responses.retrieve(queued.id)).status == "cancelled"


async def test_it_goes_on_from_another(service: Service) -> None:
    host = await service.open()
    first = await host.ai.responses.create(model="echo", input="one")
    second = await host.ai.responses.create(
        model="echo", input="two", background=True, previous_response_id=first.id
    )
    await last_of(host, second.id)
    third = await host.ai.responses.create(model="echo", input="three", previous_response_id=second.id)
    run = (await host.http.get(f"/tracon/api/runs/{third.id.removeprefix('resp_')}")).body
    items = host.ai.conversations.items.list(run["session_id"], order="asc")
    said: list[Any] = [item async for item in items]
    assert [item.content[0].text for item in said] == ["one", "one", "two", "two", "three", "three"]


async def test_with_a_key_it_is_queued_once(service: Service) -> None:
    """IDEM-1: and the repetition gets the same bytes, however far the response is."""
    host = await service.open()
    asked = {"model": "echo", "input": "hi", "background": True}
    headers = {"Idempotency-Key": "k"}
    first = await host.http.request("POST", "/tracon/v1/responses", json=asked, headers=headers)
    await last_of(host, first.body["id"])
    again = await host.http.request("POST", "/tracon/v1/responses", json=asked, headers=headers)
    assert again.body == first.body
    assert again.body["status"] == "queued"
    assert again.headers["Idempotency-Replayed"] == "true"
    assert await host.runs() == 1


async def test_what_nobody_could_look_at_is_not_begun(service: Service) -> None:
    host = await service.open(worker=False)
    with pytest.raises(openai.BadRequestError) as caught:
        await host.ai.responses.create(model="echo", input="hi", background=True, store=False)
    assert caught.value.param == "store"
