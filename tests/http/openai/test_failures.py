"""What OpenAI's own client makes of what goes wrong: which exception, and whether it tries again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import openai
import pytest
import pytest_asyncio

from tests.http.openai.asking import ask
from tests.http.openai.conftest import Host, Service, opened
from tests.store.proxy import Proxy, proxied

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = [
    # agent, exception, status, type, code, whether the client would try again
    ("nobody", openai.NotFoundError, 404, "invalid_request_error", "model_not_found", False),
    ("failing", openai.InternalServerError, 503, "service_unavailable", "provider_unavailable", True),
    ("rejecting", openai.UnprocessableEntityError, 422, "invalid_request_error", "provider_rejected", False),
    ("denied", openai.InternalServerError, 502, "server_error", "provider_auth", False),
    ("filtered", openai.UnprocessableEntityError, 422, "invalid_request_error", "content_filtered", False),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("agent", "kind", "status", "type_", "code", "again"), CASES)
async def test_a_run_without_an_answer_is_an_exception(
    shared: Host,
    agent: str,
    kind: type[openai.APIStatusError],
    status: int,
    type_: str,
    code: str,
    again: bool,
    stream: bool,
) -> None:
    """HTTP-1. A streamed run that fails before its first words has its status, too."""
    with pytest.raises(kind) as caught:
        await shared.ai.chat.completions.create(model=agent, messages=ask(), stream=stream)
    error, headers = caught.value, caught.value.response.headers
    assert (error.status_code, error.type, error.code) == (status, type_, code)
    assert error.param == ("model" if code == "model_not_found" else None)
    assert error.request_id == headers["x-request-id"]
    assert headers["content-type"].startswith("application/json")
    would_retry = status >= 500 and headers.get("x-should-retry") != "false"
    assert would_retry is again
    assert ("retry-after" in headers) is again


async def test_a_stream_that_breaks_off_is_raised_and_not_done(shared: Host) -> None:
    """A failed stream never has a clean end."""
    stream = await shared.ai.chat.completions.create(model="cut", messages=ask(), stream=True)
    told: list[str] = []

    async def read() -> None:
        async for chunk in stream:
            told.append(chunk.choices[0].delta.content or "")

    with pytest.raises(openai.APIError, match="broke off") as caught:
        await read()
    assert "".join(told) == "This will "
    assert (caught.value.type, caught.value.code) == ("server_error", "stream_error")
    asked = {"model": "cut", "messages": ask(), "stream": True}
    raw = (await shared.http.request("POST", "/tracon/v1/chat/completions", json=asked)).body
    assert b"[DONE]" not in raw
    assert b'finish_reason":"' not in raw


async def test_a_run_that_is_cancelled_is_an_error_that_is_not_tried_again(service: Service) -> None:
    """CANCEL-3: 409 is a status with which the client would try again by itself."""
    host = await service.open()
    ai = host.ai.with_options(max_retries=2)
    waiting = asyncio.create_task(ai.chat.completions.create(model="gated", messages=ask()))
    await asyncio.wait_for(service.gate.reached.wait(), 10)
    [actor] = host.http.host.roster
    await host.http.post(f"/tracon/api/runs/{actor.run_id}/cancel", {})
    with pytest.raises(openai.ConflictError) as caught:
        await waiting
    assert caught.value.code == "run_cancelled"
    assert await host.runs() == 1


async def test_the_client_tries_again_what_may_pass(service: Service) -> None:
    """503 with Retry-After: the second run gets the answer."""
    host = await service.open()
    ai = host.ai.with_options(max_retries=1)
    completion = await ai.chat.completions.create(model="once-busy", messages=ask())
    assert completion.choices[0].message.content == "Here I am."
    assert await host.runs() == 2


@pytest.mark.parametrize(("agent", "runs"), [("doer", 1), ("reader", 2)])
async def test_what_cannot_be_undone_is_not_done_again(service: Service, agent: str, runs: int) -> None:
    """A run that had done something to the world invites no other; one that only looked does."""
    host = await service.open()
    ai = host.ai.with_options(max_retries=1)
    with pytest.raises(openai.InternalServerError):
        await ai.chat.completions.create(model=agent, messages=ask())
    assert await host.runs() == runs


async def test_a_run_that_took_too_long_is_not_begun_again(service: Service) -> None:
    host = await service.open(turn={"timeout": 0.2})
    ai = host.ai.with_options(max_retries=2)
    with pytest.raises(openai.InternalServerError) as caught:
        await ai.chat.completions.create(model="gated", messages=ask())
    assert (caught.value.status_code, caught.value.code) == (504, "deadline_exceeded")
    assert await host.runs() == 1


@pytest_asyncio.fixture(loop_scope="module")
async def proxy(database: str, tmp_path: Path) -> AsyncIterator[Proxy]:
    async with proxied(tmp_path, database) as one:
        yield one


async def test_without_the_store_the_service_is_unavailable_and_the_client_comes_again(
    proxy: Proxy, tmp_path: Path
) -> None:
    """EVENT-8, DRAIN-1: the same words for everything that keeps a run from being begun."""
    async with opened(proxy.dsn, tmp_path) as service:
        host = await service.open()
        await proxy.refuse()
        with pytest.raises(openai.InternalServerError) as caught:
            await host.ai.chat.completions.create(model="echo", messages=ask())
        error = caught.value
        assert (error.status_code, error.type, error.code) == (
            503,
            "service_unavailable",
            "service_unavailable",
        )
        assert int(error.response.headers["retry-after"]) >= 1
        assert "x-should-retry" not in error.response.headers
        ai = host.ai.with_options(max_retries=5)
        trying = asyncio.create_task(ai.chat.completions.create(model="echo", messages=ask("hi")))
        await proxy.accept()
        assert (await trying).choices[0].message.content == "hi"


async def test_a_key_that_is_not_known_is_an_authentication_error(shared: Host) -> None:
    """HTTP-4"""
    ai = shared.ai.with_options(api_key="trc_0123456789ab_" + "x" * 43)
    with pytest.raises(openai.AuthenticationError) as caught:
        await ai.models.list()
    assert (caught.value.type, caught.value.code) == ("authentication_error", "unauthenticated")
    assert "x-should-retry" not in caught.value.response.headers
