"""Another tenant's thing is not there, whichever route asks for it (HTTP-2)."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from app.http.route import Route
from app.http.routes import ROUTES
from app.keys.key import Scope
from tests.http.client import Answer, Client
from tests.http.conftest import Hosts
from tests.http.test_auth import bearer, key, named

SHARED = {
    *("/api/models", "/api/meta", "/health", "/metrics", "/openapi.json"),
    "/api/triggers",
}
"""What belongs to the host and is the same for every tenant."""


def belongs_to_a_tenant(route: Route) -> bool:
    return not any(route.path.startswith(start) for start in SHARED)


OWNED = [route for route in ROUTES if belongs_to_a_tenant(route)]
OF_ONE = [route for route in OWNED if "{" in route.path and not route.creates]
OF_A_NAME = [route for route in OWNED if route.creates]
LISTS = [route for route in OWNED if "{" not in route.path and route.method == "GET"]


BODIES: dict[str, object] = {
    "/api/idempotency/{key}/complete": {"answer": 1},
    "/api/approvals/{id}/decide": {"decision": "reject"},
    "/api/agents/{name}": {"provider": "scripted", "model": "echo"},
    "/api/agents/{name}/run": {"message": "hi"},
    "/api/workflows/{name}": {"kind": "sequential", "nodes": [{"name": "look", "agent": "echo"}]},
    "/api/workflows/{name}/run": {"message": "hi"},
    "/api/workflows/runs/{id}/respond": {"answer": "yes"},
}
"""What a route takes where it does not take an empty object."""


class Things:
    """One of everything that a tenant can have. A route to a new kind of thing wants it added here."""

    def __init__(
        self,
        *,
        run: str,
        key: str,
        job: str,
        batch: str,
        response: str,
        conversation: str,
        approval: str,
        workflow_run: str,
    ) -> None:
        self._by_collection = {
            "/api/agents/{name}": "greeter",
            "/v1/models/{name}": "greeter",
            "/api/workflows/runs/{id}": workflow_run,
            "/api/workflows/{name}": "review",
            "/api/runs/{id}": run,
            "/api/keys/{id}": key,
            "/api/jobs/{id}": job,
            "/api/batches/{id}": batch,
            "/api/schedules/{name}": "nightly",
            "/api/idempotency/{key}": "ticket-4182",
            "/api/approvals/{id}": approval,
            "/v1/responses/{id}": response,
            "/v1/conversations/{id}": conversation,
        }

    def path(self, route: Route) -> str:
        for start, thing in self._by_collection.items():
            if route.path.startswith(start):
                rest = route.path.removeprefix(start).replace("{other}", thing)
                rest = re.sub(r"\{\w+\}", "1", rest)
                return "/tracon" + start.rpartition("{")[0] + thing + rest
        raise AssertionError(f"{route.path} is the way to a thing that no tenant has in this test")


async def ask(host: Client, route: Route, path: str, headers: Mapping[str, str]) -> Answer:
    options: dict[str, Any] = {"headers": {"Accept": "application/json", **headers}}
    if route.body is not None:
        options["json"] = BODIES.get(route.path, {})
    return await host.request(route.method, path, **options)


async def things_of(host: Client, headers: dict[str, str]) -> Things:
    once = {**headers, "Idempotency-Key": "ticket-4182"}
    run = await host.post("/tracon/api/agents/echo/run", {"message": "private", "session_id": "s"}, **once)
    made = await host.post("/tracon/api/keys", {"name": "private"}, **headers)
    asked = {"agent": "echo", "message": "private"}
    job = await host.post(
        "/tracon/api/agents/echo/run", {"message": "private"}, **headers, Prefer="respond-async"
    )
    batch = await host.post("/tracon/api/batches", {"agent": "echo", "items": [{"message": "x"}]}, **headers)
    await host.post("/tracon/api/schedules", {**asked, "name": "nightly", "cron": "0 3 * * *"}, **headers)
    request = {"model": "echo", "input": "private"}
    response = await host.post("/tracon/v1/responses", request, **headers)
    conversation = await host.post("/tracon/v1/conversations", {}, **headers)
    await host.post("/tracon/api/agents/gated/run", {"message": "private"}, **headers)
    waiting = await host.post("/tracon/api/agents/asking/run", {"message": "private"}, **headers)
    greeter = {"provider": "scripted", "model": "echo", "instructions": "private"}
    await defined(host, "/tracon/api/agents/greeter", greeter, headers)
    review = {"kind": "sequential", "nodes": [{"name": "ask", "ask": "private?"}]}
    await defined(host, "/tracon/api/workflows/review", review, headers)
    asked_back = await host.post("/tracon/api/workflows/review/run", {"message": "private"}, **headers)
    for view in ("runs", "tools", "statistics", "idempotency", "jobs", "schedules", "approvals"):
        await host.views_show(view)
    return Things(
        run=run.body["id"],
        key=made.body["id"],
        job=job.body["id"],
        batch=batch.body["id"],
        response=response.body["id"],
        conversation=conversation.body["id"],
        approval=waiting.body["id"],
        workflow_run=asked_back.body["id"],
    )


async def defined(host: Client, path: str, body: object, headers: Mapping[str, str]) -> None:
    answer = await host.request("PUT", path, json=body, headers={"Accept": "application/json", **headers})
    assert answer.status == 201, answer.body


@pytest.mark.parametrize("route", OF_ONE, ids=named)
async def test_another_tenants_thing_is_not_found(hosts: Hosts, route: Route) -> None:
    """HTTP-2"""
    host = await hosts.open()
    hosts.gate.let_go.set()
    owner, stranger = await key(host), await key(host, tenant="zebra")
    path = (await things_of(host, owner)).path(route)
    refused = await ask(host, route, path, stranger)
    assert refused.status == 404, refused.body
    assert "private" not in json.dumps(refused.body)
    served = await ask(host, route, path, owner)
    assert served.status != 404, served.body


@pytest.mark.parametrize("route", OF_A_NAME, ids=named)
async def test_of_one_name_every_tenant_has_its_own(hosts: Hosts, route: Route) -> None:
    """HTTP-2: to define it is to define one's own, and says nothing of another's."""
    host = await hosts.open()
    hosts.gate.let_go.set()
    owner, stranger = await key(host), await key(host, tenant="zebra")
    path = (await things_of(host, owner)).path(route)
    before = await host.get(path, **owner)
    made = await ask(host, route, path, stranger)
    assert (made.status, made.body["version"]) == (201, 1)
    assert "private" not in json.dumps(made.body)
    assert (await host.get(path, **owner)).body == before.body


async def listed(host: Client, route: Route, headers: dict[str, str]) -> str:
    return json.dumps((await ask(host, route, "/tracon" + route.path, headers)).body)


@pytest.mark.parametrize("route", LISTS, ids=named)
async def test_another_tenants_things_are_in_no_list(hosts: Hosts, route: Route) -> None:
    """HTTP-2"""
    host = await hosts.open(quotas={"runs": {"metric": "runs", "period": "day", "limit": 1000}})
    hosts.gate.let_go.set()
    owner, stranger = await key(host), await key(host, tenant="zebra")
    await things_of(host, owner)
    hidden = await listed(host, route, stranger)
    async with asyncio.timeout(10):
        while await listed(host, route, owner) == hidden:  # until its view has the owner's things
            await asyncio.sleep(0.01)
    hidden = await listed(host, route, stranger)
    assert "acme" not in hidden
    assert "private" not in hidden


async def test_two_tenants_sessions_of_one_name_are_two(host: Client) -> None:
    """HTTP-2"""
    owner, stranger = await key(host), await key(host, tenant="zebra")
    body = {"message": "hi", "session_id": "s"}
    for headers in (owner, stranger):
        run = (await host.post("/tracon/api/agents/echo/run", body, **headers)).body
        started = (await host.get(f"/tracon/api/runs/{run['id']}/events", **headers)).body["events"][1]
        assert started["data"]["session_version"] == 0


async def test_an_admin_makes_keys_of_its_own_tenant(host: Client) -> None:
    """HTTP-4"""
    admin = await key(host, Scope.ADMIN)
    made = (await host.post("/tracon/api/keys", {"name": "ours"}, **admin)).body
    assert made["tenant"] == "acme"
    run = await host.post("/tracon/api/agents/echo/run", {"message": "hi"}, **bearer(made["secret"]))
    assert run.body["tenant"] == "acme"
