"""Streamed chat completions while their runs go on."""

import pytest

from tests.http.openai.asking import ask
from tests.http.openai.conftest import Service

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_first_words_are_sent_when_they_are_recorded(service: Service) -> None:
    """EVENT-7: while the run goes on."""
    host = await service.open()
    stream = await host.ai.chat.completions.create(model="slow", messages=ask(), stream=True)
    _, first = await anext(stream), await anext(stream)
    run_id = stream.response.headers["x-run-id"]
    assert first.choices[0].delta.content == "One"
    assert (await host.http.get(f"/tracon/api/runs/{run_id}")).body["status"] == "Running"
    assert "TextDelta" in {event["type"] for event in await host.events(run_id)}
    rest = [chunk async for chunk in stream]
    assert rest[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("deltas", ["recorded", "live"])
async def test_what_is_streamed_is_the_same_recorded_or_not(service: Service, deltas: str) -> None:
    """EVENT-7"""
    host = await service.open(recording={"deltas": deltas})
    for model, text in (
        ("slow", "One two three four five six."),
        ("helper", "Let me look.\n\nIt is raining."),
    ):
        stream = await host.ai.chat.completions.create(model=model, messages=ask(), stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == text


async def test_who_closes_a_stream_leaves_the_run_to_go_on(service: Service) -> None:
    """HTTP-3"""
    host = await service.open()
    stream = await host.ai.chat.completions.create(model="slow", messages=ask(), stream=True)
    await anext(stream)
    run_id = stream.response.headers["x-run-id"]
    await stream.close()
    async with host.http.watch(run_id) as watched:
        assert (await watched.rest())[-1].event == "RunCompleted"


async def test_a_silent_stream_is_opened_and_kept_open(service: Service) -> None:
    """HTTP-3"""
    host = await service.open(server={"sse_keepalive": 0.05})
    asked = {"model": "gated", "messages": ask(), "stream": True}
    async with host.http.session.post("/tracon/v1/chat/completions", json=asked) as response:
        assert response.status == 200
        assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        service.gate.let_go.set()
        assert (await response.read()).endswith(b"data: [DONE]\n\n")
