"""How providers look when nobody calls them, for all hosts (SINGLE-1), and what that leaves open (BREAK)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.http.client import Client
from tests.http.conftest import PROVIDER, Hosts
from tests.store.proxy import Proxy
from tests.upstream.server import Upstream


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream() as serving:
        yield serving


async def refusing() -> web.Response:
    return web.json_response({"error": {"message": "overloaded"}}, status=503)


def watched(upstream: Upstream, **more: Any) -> dict[str, Any]:
    wire = {"type": "openai", "base_url": f"{upstream.url}/v1", "models": {"503-page": {}}}
    return {
        "providers": {"scripted": PROVIDER, "wire": wire},
        "agents": {"broken": {"name": "broken", "provider": "wire", "model": "503-page"}},
        "health": {"background_interval": 0.05},
        **more,
    }


async def health_of(host: Client, provider: str = "wire") -> Any:
    listed = (await host.get("/tracon/api/models/health")).body["providers"]
    return next(one for one in listed if one["provider"] == provider)


async def seen(host: Client, state: str, provider: str = "wire") -> Any:
    async with asyncio.timeout(15):
        while not (health := await health_of(host, provider))["seen"] or health["seen"]["state"] != state:
            await asyncio.sleep(0.01)
    return health


async def test_every_host_shows_what_one_has_seen(hosts: Hosts, upstream: Upstream) -> None:
    """SINGLE-1: one host of all looks; all of them show how long ago, and at what."""
    single = {"singleton_execution": {"enabled": True}}
    first = await hosts.open(**watched(upstream, **single))
    await seen(first, "up")
    second = await hosts.open(**watched(upstream, **single))
    for host in (first, second):
        health = await seen(host, "up")
        assert (health["seen"]["source"], health["circuit"]) == ("model_list", "closed")
        assert 0 <= health["seen"]["age_s"] < 60
    assert (await seen(second, "up", "scripted"))["seen"]["source"] == "in_process"
    assert second.count("tracon_duties_total", duty="health", outcome="done") == 0
    assert first.count("tracon_provider_up", provider="wire") == 1
    upstream.list_answer = refusing
    assert "overloaded" in (await seen(second, "down"))["seen"]["detail"]


async def test_what_is_seen_opens_no_circuit_and_closes_none(hosts: Hosts, upstream: Upstream) -> None:
    """BREAK-1: consecutive failures are those of calls, and so is the success that ends their row."""
    upstream.list_answer = refusing
    breaker = {"circuit_breaker": {"failure_threshold": 2, "break_duration": 3600}}
    host = await hosts.open(**watched(upstream, **breaker))
    health = await seen(host, "down")
    assert (health["circuit"], health["consecutive_failures"]) == ("closed", 0)
    for _ in range(2):
        await host.run("broken")
    upstream.list_answer = answering
    health = await seen(host, "up")
    assert health["circuit"] == "open"
    assert health["consecutive_failures"] >= 2


async def answering() -> web.Response:
    return web.json_response({"data": []})


async def test_where_nobody_looks_nothing_is_shown(hosts: Hosts, upstream: Upstream) -> None:
    """`health.background_interval` is off by default."""
    host = await hosts.open(**watched(upstream, health={}))
    assert (await health_of(host))["seen"] is None
    assert upstream.lists == []


async def test_without_the_database_circuits_are_shown_all_the_same(
    hosts: Hosts, upstream: Upstream, proxy: Proxy
) -> None:
    host = await hosts.open(**watched(upstream, dsn=proxy.dsn, health={"background_interval": 3600}))
    await seen(host, "up")
    proxy.hold()
    health = await health_of(host)
    assert (health["circuit"], health["seen"]) == ("closed", None)
