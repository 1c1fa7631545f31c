"""What a host says of itself, and what it answers when its store is away."""

import json
import logging

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from app.http.middleware import observe, stamp, tell_problems
from app.http.services import SERVICES
from tests.http.client import Client, eventually
from tests.http.conftest import Hosts
from tests.store.proxy import Proxy

PROBES = ("/health/live", "/health/ready", "/metrics", "/openapi.json")


@pytest.mark.parametrize("path", PROBES)
async def test_probes_answer_at_the_root_and_under_the_prefix(host: Client, path: str) -> None:
    """HTTP-5"""
    assert (await host.get(path)).status == (await host.get("/tracon" + path)).status == 200
    assert (await host.request("HEAD", path)).status == 200


async def test_the_prefix_is_the_operators_choice(hosts: Hosts) -> None:
    """HTTP-1"""
    host = await hosts.open(server={"prefix": "/agents/v2"})
    async with host.session.post("/agents/v2/api/agents/echo/run", json={"message": "hi"}) as response:
        assert response.headers["Location"].startswith("/agents/v2/api/runs/")
        await response.read()
    assert (await host.get("/tracon/api/runs")).status == 404
    assert (await host.get("/health/live")).status == 200
    assert "/agents/v2/api/runs" in (await host.get("/openapi.json")).body["paths"]


async def test_the_root_says_where_to_go(host: Client) -> None:
    """HTTP-5"""
    pointers = (await host.get("/")).body
    assert pointers["name"] == "tracon"
    for name in ("openapi", "ready", "metrics"):
        assert (await host.get(pointers[name])).status == 200


async def test_meta_says_what_runs_here_and_no_secret(hosts: Hosts, database: str) -> None:
    """HTTP-5"""
    host = await hosts.open(profile="production")
    meta = (await host.get("/tracon/api/meta")).body
    assert set(meta) == {
        "version", "host_id", "python", "postgres", "profile", "started_at", "uptime_s",
    }  # fmt: skip
    assert meta["profile"] == "production"
    assert meta["uptime_s"] >= 0
    assert database not in json.dumps(meta)


async def test_answers_do_not_tell_what_the_host_is_made_of(host: Client) -> None:
    """HTTP-1"""
    for path in ("/", "/tracon/api/nothing"):
        headers = (await host.get(path)).headers
        assert (headers["Server"], headers["X-Content-Type-Options"]) == ("tracon", "nosniff")


async def test_metrics_count_what_happened(host: Client) -> None:
    """HTTP-5"""
    await host.run("echo")
    async with host.start("echo") as stream:
        await stream.rest()
    await host.get("/tracon/api/nothing")
    await host.views_show("runs")
    text = (await host.get("/metrics", Accept="*/*")).body.decode()
    assert (
        'tracon_http_requests_total{method="POST",route="/tracon/api/agents/{name}/run",status="200"} 2.0'
        in text
    )
    assert 'tracon_http_requests_total{method="GET",route="unmatched",status="404"} 1.0' in text
    assert 'tracon_projection_lag_events{projection="runs"} 0.0' in text
    assert 'tracon_projection_stopped{projection="runs"} 0.0' in text
    assert 'tracon_runs_started_total{agent="echo"} 2.0' in text
    assert 'tracon_runs_ended_total{status="Completed"} 2.0' in text
    assert 'tracon_tokens_total{direction="input",model="echo",provider="scripted"} 2.0' in text
    assert "tracon_append_events_count" in text
    assert "tracon_store_up 1.0" in text
    assert "tracon_build_info{" in text
    assert stream.run_id not in text


async def test_a_clients_own_request_id_is_used_if_a_log_can_hold_it(host: Client) -> None:
    """HTTP-1"""
    own = await host.get("/health/live", **{"X-Request-Id": "trace-7:a.b_c"})
    assert own.headers["X-Request-Id"] == "trace-7:a.b_c"
    for unfit in ("x" * 129, "two words", "é"):
        answer = await host.get("/health/live", **{"X-Request-Id": unfit})
        assert answer.headers["X-Request-Id"] != unfit
        assert answer.headers["X-Request-Id"].isalnum()


async def test_a_crash_is_told_apart_by_its_request_id_and_nothing_else(
    host: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """HTTP-1"""

    async def crash(request: web.Request) -> web.Response:
        raise LookupError("the password is hunter2")

    application = web.Application(middlewares=(observe, tell_problems))
    application[SERVICES] = host.host.services
    application.on_response_prepare.append(stamp)
    application.router.add_get("/", crash)
    with caplog.at_level(logging.ERROR):
        async with TestClient(TestServer(application)) as client, client.get("/") as response:
            told = await response.json(content_type="application/problem+json")
    assert (response.status, told["code"]) == (500, "internal_error")
    assert "hunter2" not in json.dumps(told)
    [crashed] = [record for record in caplog.records if record.getMessage() == "request.crashed"]
    assert crashed.exc_text is not None
    assert "hunter2" in crashed.exc_text


async def test_a_host_without_its_store_is_live_and_not_ready_until_it_is_back(
    hosts: Hosts, proxy: Proxy
) -> None:
    """EVENT-8"""
    host = await hosts.open(dsn=proxy.dsn)
    await host.run("echo")
    await proxy.refuse()
    answer = await host.get("/health/ready")
    assert (answer.status, answer.body["code"]) == (503, "store_unavailable")
    assert (await host.get("/health/live")).status == 200
    await proxy.accept()
    await eventually(lambda: host.count("tracon_store_up") == 1)
    assert (await host.get("/health/ready")).status == 200


@pytest.mark.parametrize("stream", [True, False])
async def test_a_submission_without_a_store_is_refused_and_told_when_to_come_back(
    hosts: Hosts, proxy: Proxy, stream: bool
) -> None:
    """EVENT-8"""
    host = await hosts.open(dsn=proxy.dsn)
    await host.run("echo")
    await proxy.refuse()
    accept = "text/event-stream" if stream else "application/json"
    answer = await host.post("/tracon/api/agents/echo/run", {"message": "hi"}, Accept=accept)
    assert (answer.status, answer.body["code"]) == (503, "store_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "PGSQL" not in answer.body["detail"]


async def test_reading_without_a_store_is_refused_too(hosts: Hosts, proxy: Proxy) -> None:
    """EVENT-8, HTTP-1"""
    host = await hosts.open(dsn=proxy.dsn)
    run_id = (await host.run("echo")).body["id"]
    await proxy.refuse()
    for path in ("", f"/{run_id}", f"/{run_id}/events", f"/{run_id}/input", f"/{run_id}/tools"):
        answer = await host.get(f"/tracon/api/runs{path}")
        assert (answer.status, answer.body["code"]) == (503, "store_unavailable"), path
    assert (await host.get("/metrics")).status == 200


async def test_a_host_that_does_not_get_an_answer_in_time_is_not_ready(
    hosts: Hosts, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVENT-8"""
    monkeypatch.setattr("app.http.host.READY_WITHIN_S", 0.1)
    host = await hosts.open(dsn=proxy.dsn)
    await host.run("echo")
    proxy.hold()
    answer = await host.get("/health/ready")
    assert (answer.status, answer.body["code"]) == (503, "store_unavailable")


async def test_a_store_that_goes_away_under_a_stream_ends_it_with_a_frame(hosts: Hosts, proxy: Proxy) -> None:
    """HTTP-3, EVENT-8: what was seen stays, and the client can go on from there."""
    owner, other = await hosts.open(), await hosts.open(dsn=proxy.dsn)
    async with owner.start("gated") as stream:
        seen = await stream.until("ToolInvoking")
        hosts.gate.let_go.set()
        seen += await stream.rest()
    await proxy.refuse()
    answer = await other.get(f"/tracon/api/runs/{stream.run_id}/events", Accept="text/event-stream")
    assert answer.status == 503
    await proxy.accept()
    async with other.watch(stream.run_id, after=2) as resumed:
        assert await resumed.rest() == seen[2:]
