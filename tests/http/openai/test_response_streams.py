"""Streamed responses: the order of their events, and going on from any of them."""

import asyncio
from typing import Any

import openai
import pytest

from tests.http.openai.conftest import Host, Service

pytestmark = pytest.mark.asyncio(loop_scope="module")

STORY = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


async def told(host: Host, response_id: str, after: int | None = None) -> list[Any]:
    """The events of a response, from after one of them on."""
    more: dict[str, Any] = {} if after is None else {"starting_after": after}
    stream = await host.ai.responses.retrieve(response_id, stream=True, **more)
    return [event async for event in stream]


async def streamed(host: Host, model: str, **more: Any) -> list[Any]:
    stream = await host.ai.responses.create(model=model, input="Well?", stream=True, **more)
    return [event async for event in stream]


def kinds(events: list[Any]) -> list[str]:
    """Their types; several of one kind in a row are one."""
    types = [event.type for event in events]
    return [kind for place, kind in enumerate(types) if place == 0 or types[place - 1] != kind]


async def test_events_come_in_the_order_of_a_responses_life(shared: Host) -> None:
    events = await streamed(shared, "story")
    assert kinds(events) == STORY
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == (
        "Once upon a time."
    )
    created, last = events[0].response, events[-1].response
    assert (created.status, created.output, created.usage) == ("in_progress", [], None)
    assert await shared.ai.responses.retrieve(last.id) == last
    assert last.output[0].id == next(event.item_id for event in events if "delta" in event.type)


async def test_the_clients_own_account_of_the_stream_is_the_response(shared: Host) -> None:
    async with shared.ai.responses.stream(model="helper", input="Well?") as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    output: list[Any] = final.output
    assert [item.content[0].text for item in output] == ["Let me look.", "It is raining."]
    assert kinds(events) == [*STORY[:2], *STORY[2:-1] * 2, STORY[-1]]


@pytest.mark.parametrize("model", ["story", "helper", "long", "weather"])
async def test_a_stream_can_be_gone_on_from_at_any_event_on_any_host(service: Service, model: str) -> None:
    """HTTP-3: without gap or repeat, and told alike wherever it is told."""
    host, other = await service.open(), await service.open()
    events = await streamed(host, model)
    assert await told(other, events[0].response.id) == events
    for event in events:
        rest = events[event.sequence_number + 1 :]
        assert await told(other, events[0].response.id, event.sequence_number) == rest


async def test_a_live_stream_can_be_gone_on_from(service: Service) -> None:
    """HTTP-3"""
    host, other = await service.open(), await service.open()
    stream = await host.ai.responses.create(model="slow", input="Well?", stream=True)
    seen: list[Any] = [await anext(stream) for _ in range(5)]
    await stream.close()
    rest = await told(other, seen[0].response.id, seen[-1].sequence_number)
    assert seen + rest == await told(host, seen[0].response.id)
    assert rest[-1].type == "response.completed"


async def test_words_that_are_only_shown_share_a_number(service: Service) -> None:
    """EVENT-7: what is recorded has the same numbers for who watched and for who comes later."""
    host = await service.open(recording={"deltas": "live"})
    events = await streamed(host, "slow")
    again = await told(host, events[0].response.id)
    shown = [event for event in events if event.type == "response.output_text.delta"]
    assert len(shown) > 1
    assert len({event.sequence_number for event in shown}) == 1
    assert [event for event in events if event not in shown] == [
        event for event in again if event.type != "response.output_text.delta"
    ]
    [whole] = [event for event in again if event.type == "response.output_text.delta"]
    assert whole.delta == "".join(event.delta for event in shown)
    assert whole.sequence_number == shown[0].sequence_number


@pytest.mark.parametrize("deltas", ["recorded", "live"])
async def test_a_stream_that_fails_ends_with_that(service: Service, deltas: str) -> None:
    """Never with a clean end."""
    host = await service.open(recording={"deltas": deltas})
    events = await streamed(host, "cut")
    last = events[-1]
    assert last.type == "response.failed"
    assert (last.response.status, last.response.error.code) == ("failed", "server_error")
    assert "broke off" in last.response.error.message
    assert [event.sequence_number for event in events] == sorted(event.sequence_number for event in events)
    [again] = await told(host, events[0].response.id, events[-2].sequence_number)
    assert (again.type, again.response.error) == (last.type, last.response.error)


async def test_what_was_said_before_the_failure_is_incomplete(shared: Host) -> None:
    [*_, last] = await streamed(shared, "cut")
    [message] = last.response.output
    assert (message.status, message.content[0].text) == ("incomplete", "This will ")


@pytest.mark.parametrize(
    ("model", "reason", "more"),
    [("endless", "max_output_tokens", {"max_output_tokens": 3}), ("filtered", "content_filter", {})],
)
async def test_a_stream_that_ends_early_says_so(shared: Host, model: str, reason: str, more: Any) -> None:
    last = (await streamed(shared, model, **more))[-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == reason


async def test_a_stream_in_a_form_says_nothing_that_does_not_have_it(shared: Host) -> None:
    """CHAIN-9"""
    schema = {"type": "object", "required": ["city"]}
    format_ = {"type": "json_schema", "name": "weather", "schema": schema}
    events = await streamed(shared, "corrected", text={"format": format_})
    [delta] = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert delta == '{"city": "Oslo", "degrees": 4}'
    assert kinds(events) == STORY


async def test_an_unstreamed_response_can_be_watched_afterwards(shared: Host) -> None:
    response = await shared.ai.responses.create(model="helper", input="Well?")
    events = await told(shared, response.id)
    assert kinds(events) == [*STORY[:2], *STORY[2:-1] * 2, STORY[-1]]
    assert events[-1].response == response


async def test_a_response_under_way_can_be_cancelled(service: Service) -> None:
    """CANCEL-1"""
    host = await service.open()
    stream = await host.ai.responses.create(model="gated", input="Well?", stream=True)
    created: Any = await anext(stream)
    await asyncio.wait_for(service.gate.reached.wait(), 10)
    now = await host.ai.responses.retrieve(created.response.id)
    assert (now.status, now.usage) == ("in_progress", None)
    cancelled = await host.ai.responses.cancel(created.response.id)
    assert (cancelled.id, cancelled.status) == (created.response.id, "cancelled")
    assert await host.ai.responses.cancel(created.response.id) == cancelled
    last: Any = [event async for event in stream][-1]
    assert (last.type, last.response.status) == ("response.failed", "cancelled")


async def test_a_response_that_has_ended_cannot_be_cancelled(shared: Host) -> None:
    """CANCEL-1: and the client does not try that again."""
    response = await shared.ai.responses.create(model="echo", input="hi")
    with pytest.raises(openai.ConflictError) as caught:
        await shared.ai.responses.cancel(response.id)
    assert caught.value.code == "run_already_ended"
    assert caught.value.response.headers["x-should-retry"] == "false"


async def test_a_place_that_is_none_is_refused(shared: Host) -> None:
    response = await shared.ai.responses.create(model="echo", input="hi")
    for query in ("stream=1&starting_after=-1", "stream=1&starting_after=x", "stream=maybe", "after=1"):
        answer = await shared.http.get(f"/tracon/v1/responses/{response.id}?{query}")
        assert (answer.status, answer.body["error"]["type"]) == (400, "invalid_request_error"), query


async def test_fields_that_are_asked_for_again_are_taken(shared: Host) -> None:
    response = await shared.ai.responses.create(model="echo", input="hi")
    include: Any = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert await shared.ai.responses.retrieve(response.id, include=include) == response
