"""Cancelling a call reaches the provider: its connection is closed at once (CANCEL-3)."""

import asyncio
from contextlib import aclosing

import pytest

from app.models.http import HttpSession
from app.models.port import ModelAdapter, ModelReply, TextChunk
from domain.failure import FailureClass
from tests.models.calling import Answered, Failed, asking, completed, streamed
from tests.upstream.attempts import Attempt
from tests.upstream.server import Upstream

PROMPT_S = 0.2
"""Twice what is promised (100 ms), because the machine may be busy; less than any wait in the adapters."""


async def closed_within(attempt: Attempt, since: float) -> float:
    """How long after `since` the upstream saw its client go."""
    async with asyncio.timeout(5):
        await attempt.ended.wait()
    assert attempt.left_at is not None, "the upstream had finished by itself"
    return attempt.left_at - since


async def under_way(upstream: Upstream, model: str, count: int = 1) -> list[Attempt]:
    """The attempts of this model, once so many are there and have sent what they will."""
    async with asyncio.timeout(20):
        while len(upstream.log.of(model)) < count:
            await upstream.log.changed()
        attempts = upstream.log.of(model)
        for attempt in attempts:
            await attempt.arrived.wait()
    return attempts


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("model", ["silent", "silent-after-preamble", "stall-2", "comments-only"])
async def test_a_cancelled_call_closes_its_connection_at_once(
    model: str, streaming: bool, chat: ModelAdapter, upstream: Upstream
) -> None:
    """CANCEL-3; C42, C46, C48: before headers, before content, in the middle, streamed or not."""
    request = asking(model, first_content_timeout_s=None)
    call = asyncio.create_task(streamed(chat, request) if streaming else completed(chat, request))
    (attempt,) = await under_way(upstream, model)
    cancelled_at = asyncio.get_running_loop().time()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await closed_within(attempt, cancelled_at) < PROMPT_S


async def test_leaving_a_stream_early_closes_its_connection(chat: ModelAdapter, upstream: Upstream) -> None:
    async with aclosing(chat.stream(asking("stall-2"))) as parts:
        assert isinstance(await anext(parts), TextChunk)
        left_at = asyncio.get_running_loop().time()
    assert await closed_within(upstream.log.only("stall-2"), left_at) < PROMPT_S


async def test_five_hundred_cancelled_streams_leave_no_connection_behind(
    chat: ModelAdapter, upstream: Upstream
) -> None:
    """CANCEL-3; C29, C42."""
    request = asking("silent-after-preamble", first_content_timeout_s=None)
    calls = [asyncio.create_task(streamed(chat, request)) for _ in range(500)]
    attempts = await under_way(upstream, "silent-after-preamble", 500)
    assert upstream.connections == 500
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    assert all(call.cancelled() for call in calls)
    await upstream.deserted()
    assert upstream.log.unfinished == 0
    assert all(attempt.left_at is not None for attempt in attempts)


async def test_closing_an_adapter_fails_its_calls_and_nobody_elses(
    chat: ModelAdapter, other_chat: ModelAdapter, upstream: Upstream
) -> None:
    """The HTTP client is shared; an adapter gives up its own calls only."""
    slow = asking("silent", first_content_timeout_s=None)
    calls = [asyncio.create_task(streamed(adapter, slow)) for adapter in (chat, other_chat)]
    await under_way(upstream, "silent", 2)
    await chat.close()
    assert await calls[0] == Failed(kind="internal", failure_class=FailureClass.INTERNAL)
    assert not calls[1].done()
    calls[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls[1]
    assert await streamed(other_chat, asking("text")) == Answered(text="Hello there you.")


@pytest.mark.parametrize("model", ["silent", "silent-after-preamble"])
async def test_closing_the_client_fails_the_calls_in_flight(
    model: str, chat: ModelAdapter, http: HttpSession, upstream: Upstream
) -> None:
    call = asyncio.create_task(streamed(chat, asking(model, first_content_timeout_s=None)))
    await under_way(upstream, model)
    await http.close()
    assert await call == Failed(kind="internal", failure_class=FailureClass.INTERNAL)


async def test_connections_are_used_again(chat: ModelAdapter, upstream: Upstream) -> None:
    """A finished call, a refused one and an unstreamed one all hand their connection on."""
    models = ("text", "429", "tools", "500", "length")
    for model in models:
        await streamed(chat, asking(model))
        await completed(chat, asking(model))
    assert len({attempt.connection for model in models for attempt in upstream.log.of(model)}) == 1


async def test_a_terminator_that_comes_after_the_reply_is_taken_along(
    chat: ModelAdapter, upstream: Upstream
) -> None:
    """The reply does not wait for it, and the connection is not lost over it."""
    name = "terminator-behind-the-gate"
    async with aclosing(chat.stream(asking(name))) as parts:
        async for part in parts:
            if isinstance(part, ModelReply):
                upstream.log.only(name).gate.set()
    await streamed(chat, asking("text"))
    assert upstream.log.only(name).connection == upstream.log.only("text").connection


async def test_a_slow_reader_is_no_stalled_provider(chat: ModelAdapter) -> None:
    """CLASS-2: the limits run while we wait for the provider, not while the caller is busy."""
    parts = chat.stream(asking("text"))
    async with aclosing(parts):
        text = ""
        reply = None
        async for part in parts:
            await asyncio.sleep(0.3)  # longer than the limit for silence: this is what is tested
            if isinstance(part, ModelReply):
                reply = part
            else:
                text += part.text
    assert reply is not None
    assert text == reply.message.content == "Hello there you."
