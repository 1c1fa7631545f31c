"""What becomes of a run whose client hangs up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.http.own_run import HUNG_UP
from tests.hosts import ENDS, follow
from tests.http.client import JSON, STREAM, Client, eventually
from tests.http.conftest import Hosts

MESSAGES = [{"role": "user", "content": "hello"}]
REQUESTS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "run, streamed": ("/tracon/api/agents/gated/run", {"message": "hello"}, STREAM),
    "run": ("/tracon/api/agents/gated/run", {"message": "hello"}, JSON),
    "chat, streamed": (
        "/tracon/v1/chat/completions",
        {"model": "gated", "messages": MESSAGES, "stream": True},
        {},
    ),
    "chat": ("/tracon/v1/chat/completions", {"model": "gated", "messages": MESSAGES}, {}),
    "response, streamed": ("/tracon/v1/responses", {"model": "gated", "input": "hello", "stream": True}, {}),
    "response": ("/tracon/v1/responses", {"model": "gated", "input": "hello"}, {}),
}


@asynccontextmanager
async def asked(
    hosts: Hosts, host: Client, path: str, body: object, headers: dict[str, str]
) -> AsyncIterator[None]:
    """A request whose run has reached its tool. Leaving the block hangs up."""

    async def ask() -> None:
        async with host.session.post(path, json=body, headers=headers) as response:
            await response.read()

    async with hosts.in_background(ask()):
        await asyncio.wait_for(hosts.gate.reached.wait(), 20)
        yield


async def noticed(host: Client, path: str) -> None:
    """Wait until the host is done with the request of whoever hung up."""
    route = path.replace("gated", "{name}")

    def counted() -> bool:
        series = host.host.services.metrics.http_requests.collect()
        return any(sample.labels["route"] == route for family in series for sample in family.samples)

    await eventually(counted)


async def end_of_the_run(host: Client) -> Any:
    [actor] = host.host.roster
    return (await follow(host.host, actor.run_id, ENDS))[-1].event


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_run_goes_on_without_its_client(hosts: Hosts, name: str) -> None:
    """HTTP-3: by itself, on either API."""
    host = await hosts.open()
    async with asked(hosts, host, *REQUESTS[name]):
        end = asyncio.ensure_future(end_of_the_run(host))
        await asyncio.sleep(0)
    await noticed(host, REQUESTS[name][0])
    hosts.gate.let_go.set()
    assert type(await end).__name__ == "RunCompleted"


@pytest.mark.parametrize("name", REQUESTS)
async def test_where_the_settings_say_so_a_run_ends_with_its_client(hosts: Hosts, name: str) -> None:
    """CANCEL-3: the same as if somebody had cancelled it."""
    host = await hosts.open(server={"on_disconnect": "cancel"})
    async with asked(hosts, host, *REQUESTS[name]):
        end = asyncio.ensure_future(end_of_the_run(host))
        await asyncio.sleep(0)
    ended = await asyncio.wait_for(end, 20)
    assert (type(ended).__name__, ended.reason) == ("RunCancelled", HUNG_UP)


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/tracon/api/agents/gated/run", {"message": "hello"}, {"Idempotency-Key": "k"}),
        ("/tracon/v1/chat/completions", {"model": "gated", "messages": MESSAGES}, {"Idempotency-Key": "k"}),
        ("/tracon/v1/responses", {"model": "gated", "input": "hello"}, {"Idempotency-Key": "k"}),
        (
            "/tracon/v1/responses",
            {"model": "gated", "input": "hello", "background": True, "stream": True},
            {},
        ),
    ],
)
async def test_with_a_key_or_in_the_background_it_goes_on_all_the_same(
    hosts: Hosts, path: str, body: object, headers: dict[str, str]
) -> None:
    """IDEM-6: a retry finds its result."""
    host = await hosts.open(server={"on_disconnect": "cancel"})
    async with asked(hosts, host, path, body, headers):
        end = asyncio.ensure_future(end_of_the_run(host))
        await asyncio.sleep(0)
    await noticed(host, path)
    hosts.gate.let_go.set()
    assert type(await end).__name__ == "RunCompleted"
    if headers:
        assert (await host.post(path, body, **headers)).headers["Idempotency-Replayed"] == "true"


async def test_whoever_only_watches_may_hang_up(hosts: Hosts) -> None:
    """HTTP-3"""
    host = await hosts.open(server={"on_disconnect": "cancel"})
    async with host.start("gated") as own:
        await own.until("ToolInvoking")
        async with host.watch(own.run_id) as watched:
            await watched.until("ToolInvoking")
            watched.response.close()
        hosts.gate.let_go.set()
        assert (await own.rest())[-1].event == "RunCompleted"
