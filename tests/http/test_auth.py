"""Who is served, as whom, and for what (HTTP-4)."""

import asyncio
import re
from typing import Any
from uuid import uuid4

import pytest

from app.http.route import Route
from app.http.routes import ROUTES
from app.keys.key import Scope, new_secret
from tests.http.client import Client, eventually
from tests.http.conftest import Hosts
from tests.queries import APPEND, KEY, Queries
from tests.queries import queries as queries
from tests.store.proxy import Proxy

ELSEWHERE = {"X-Forwarded-For": "10.0.0.7"}
GUARDED = [route for route in ROUTES if route.scope is not None]
OPEN = [route for route in ROUTES if route.scope is None and route.at_root]


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def path_of(route: Route) -> str:
    """Of something that is not there."""
    return "/tracon" + re.sub(r"\{\w+\}", str(uuid4()), route.path)


async def key(host: Client, *scopes: Scope, tenant: str = "acme") -> dict[str, str]:
    """The header of a new key; without scopes it has all of them."""
    _, secret = await host.host.services.keys.create(tenant, "test", scopes or tuple(Scope))
    return bearer(secret)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def ask(host: Client, route: Route, **headers: str) -> Any:
    options: dict[str, Any] = {"headers": {"Accept": "application/json", **headers}}
    if route.body is not None:
        options["json"] = {}
    return await host.request(route.method, path_of(route), **options)


@pytest.mark.parametrize("route", GUARDED, ids=named)
async def test_from_elsewhere_every_route_wants_a_key(hosts: Hosts, route: Route) -> None:
    """HTTP-4"""
    host = await hosts.open()
    answer = await ask(host, route, **ELSEWHERE)
    assert (answer.status, answer.body["error"]["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="tracon"'


async def test_what_is_nowhere_wants_a_key_too(host: Client) -> None:
    """HTTP-4: who has no key does not learn which paths there are."""
    assert (await host.get("/tracon/api/nothing", **ELSEWHERE)).status == 401
    assert (await host.get("/tracon/api/nothing")).status == 404
    assert (await host.request("DELETE", "/tracon/api/meta", headers=ELSEWHERE)).status == 401
    assert (await host.get("/", **ELSEWHERE)).status == 401


@pytest.mark.parametrize("route", OPEN, ids=named)
async def test_health_is_told_to_everybody(hosts: Hosts, route: Route) -> None:
    """HTTP-4"""
    host = await hosts.open(auth={"required": True})
    assert (await ask(host, route, **ELSEWHERE)).status == 200


def test_nothing_but_health_is_open() -> None:
    assert {route.path for route in OPEN} == {"/health/live", "/health/ready"}


async def test_every_route_is_served_for_its_scope_alone_and_names_it_when_it_is_missing(
    host: Client,
) -> None:
    """HTTP-4: scoped."""
    with_only = {scope: {**ELSEWHERE, **await key(host, scope)} for scope in Scope}
    for route in GUARDED:
        for scope, headers in with_only.items():
            answer = await ask(host, route, **headers)
            if scope is route.scope:
                assert answer.status not in (401, 403), named(route)
            else:
                error = answer.body["error"]
                assert (answer.status, error["code"]) == (403, "scope_missing"), named(route)
                assert route.scope in error["message"]
                assert f'scope="{route.scope}"' in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_a_key_speaks_for_its_tenant(host: Client, scheme: str) -> None:
    """HTTP-4: per tenant."""
    secret = (await key(host))["Authorization"].split()[1]
    headers = {**ELSEWHERE, "Authorization": f"{scheme} {secret}"}
    answer = await host.post("/tracon/api/agents/echo/run", {"message": "hi"}, **headers)
    assert (answer.status, answer.body["tenant"]) == (200, "acme")
    assert (await host.get(f"/tracon/api/runs/{answer.body['id']}", **headers)).status == 200


async def test_head_wants_what_get_wants(host: Client) -> None:
    """HTTP-4"""
    headers = {**ELSEWHERE, **await key(host, Scope.RUN)}
    assert (await host.request("HEAD", "/tracon/api/meta", headers=headers)).status == 403
    assert (await host.request("HEAD", "/tracon/api/meta", headers=ELSEWHERE)).status == 401


@pytest.mark.parametrize("damage", [lambda s: s[:-1], lambda s: s + "x", lambda _: new_secret()])
@pytest.mark.parametrize("headers", [{}, ELSEWHERE])
async def test_a_wrong_key_is_refused_even_where_none_is_needed(
    host: Client, damage: Any, headers: dict[str, str]
) -> None:
    """HTTP-4: or a slip in one tenant's key would be another tenant's request."""
    secret = (await key(host))["Authorization"].split()[1]
    answer = await host.get("/tracon/api/meta", **headers, **bearer(damage(secret)))
    assert (answer.status, answer.body["code"]) == (401, "unauthenticated")
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


async def test_what_was_never_a_key_of_ours_is_no_credential(host: Client) -> None:
    """HTTP-4: clients of other services' make cannot be kept from sending something."""
    for header in ("Bearer sk-unused", "Bearer", "Basic dXNlcjpwdw==", "nonsense"):
        assert (await host.get("/tracon/api/meta", Authorization=header)).status == 200
        assert (await host.get("/tracon/api/meta", Authorization=header, **ELSEWHERE)).status == 401


async def test_a_host_can_want_a_key_of_everybody(hosts: Hosts) -> None:
    """HTTP-4"""
    host = await hosts.open(auth={"required": True})
    assert (await host.get("/tracon/api/meta")).status == 401
    assert (await host.get("/metrics")).status == 401
    assert (await host.get("/tracon/api/meta", **bearer("sk-unused"))).status == 401
    headers = await key(host, Scope.READ)
    assert (await host.get("/tracon/api/meta", **headers)).status == 200
    assert (await host.get("/metrics", **headers)).status == 200


async def test_with_a_key_a_host_serves_on_every_interface(hosts: Hosts) -> None:
    """HTTP-4"""
    host = await hosts.open(server={"host": "0.0.0.0"})  # noqa: S104 - that is the point
    address = f"http://127.0.0.1:{host.address[1]}"
    theirs = {"Host": "agents.example.com"}
    assert (await host.get(f"{address}/tracon/api/meta", **theirs)).status == 401
    assert (await host.get(f"{address}/tracon/api/meta", **theirs, **await key(host))).status == 200


async def test_keys_are_made_listed_and_revoked_over_http(host: Client) -> None:
    """HTTP-4"""
    admin = await key(host, Scope.ADMIN)
    made = await host.post(
        "/tracon/api/keys", {"name": "ci", "scopes": ["read"], "expires_in": 3600}, **admin
    )
    assert made.status == 201
    secret = made.body.pop("secret")
    headers = {**ELSEWHERE, **bearer(secret)}
    assert (await host.get("/tracon/api/runs", **headers)).status == 200
    assert (made.body["tenant"], made.body["scopes"]) == ("acme", ["read"])
    assert secret.startswith(made.body["prefix"])
    listed = (await host.get("/tracon/api/keys?take=1", **admin)).body
    assert listed == {"keys": [{**made.body, "last_used_at": listed["keys"][0]["last_used_at"]}],
                      "skip": 0, "take": 1, "more": True}  # fmt: skip
    gone = await host.request("DELETE", f"/tracon/api/keys/{made.body['id']}", headers=admin)
    assert gone.status == 200
    assert gone.body["revoked_at"] is not None
    assert (await host.get("/tracon/api/runs", **headers)).status == 401


async def test_nobody_is_told_a_secret_again(host: Client) -> None:
    """HTTP-4: the secret is shown once."""
    admin = await key(host, Scope.ADMIN)
    secret = (await host.post("/tracon/api/keys", {"name": "ci"}, **admin)).body["secret"]
    answer = await host.request("GET", "/tracon/api/keys", headers=admin)
    assert secret.rpartition("_")[2] not in str(answer.body)
    assert "digest" not in str(answer.body)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "$.name"),
        ({"name": ""}, "$.name"),
        ({"name": "a\n"}, "$.name"),
        ({"name": "a", "scopes": []}, "$.scopes"),
        ({"name": "a", "scopes": ["root"]}, "$.scopes[0]"),
        ({"name": "a", "expires_in": 0}, "$.expires_in"),
        ({"name": "a", "tenant": "zebra"}, "$.tenant"),
    ],
)
async def test_a_wrong_key_request_says_what_is_wrong(host: Client, body: object, field: str) -> None:
    """HTTP-1. A tenant's admin makes keys of that tenant only."""
    answer = await host.post("/tracon/api/keys", body)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, field)


async def test_a_revoked_key_is_refused_on_every_host(hosts: Hosts) -> None:
    """HTTP-4: within auth.cache_ttl, by what each host knows by itself."""
    ours = await hosts.open()
    other = await hosts.open(auth={"cache_ttl": 0.05})
    headers = {**ELSEWHERE, **await key(ours)}
    assert (await other.get("/tracon/api/meta", **headers)).status == 200
    prefix = headers["Authorization"].split()[1].rpartition("_")[0]
    assert (await ours.request("DELETE", f"/tracon/api/keys/{prefix}", headers=headers)).status == 200
    assert (await ours.get("/tracon/api/meta", **headers)).status == 401
    async with asyncio.timeout(10):
        while (await other.get("/tracon/api/meta", **headers)).status != 401:
            await asyncio.sleep(0.01)


async def test_a_request_with_a_key_that_was_just_seen_asks_the_database_nothing(
    queries: Queries, hosts: Hosts
) -> None:
    """HTTP-4"""
    host = await hosts.open()
    headers = await key(host)
    with queries.made() as first:
        await host.get("/tracon/api/meta", **headers)
    with queries.made() as hot:
        await asyncio.gather(*(host.get("/tracon/api/meta", **headers) for _ in range(20)))
    assert (first, hot) == ([KEY], [])
    with queries.made() as run:
        await host.post("/tracon/api/agents/echo/run", {"message": "hi"}, **headers)
    assert set(run) == {APPEND}


async def test_the_use_of_a_key_is_noted_after_the_request(host: Client) -> None:
    """HTTP-4: last used."""
    admin = await key(host, Scope.ADMIN)
    await host.get("/tracon/api/keys", **admin)

    async def noted() -> bool:
        [shown] = (await host.get("/tracon/api/keys", **admin)).body["keys"]
        return shown["last_used_at"] is not None

    async with asyncio.timeout(10):
        while not await noted():
            await asyncio.sleep(0.01)


async def test_without_the_store_a_key_that_is_not_known_is_unavailable(hosts: Hosts, proxy: Proxy) -> None:
    """EVENT-8: not refused, and never let in."""
    host = await hosts.open(dsn=proxy.dsn)
    seen, fresh = await key(host), await key(host)
    assert (await host.get("/tracon/api/meta", **seen)).status == 200
    await proxy.refuse()
    assert (await host.get("/tracon/api/meta", **seen)).status == 200
    answer = await host.get("/tracon/api/meta", **fresh)
    assert (answer.status, answer.body["code"]) == (503, "store_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    await proxy.accept()
    await eventually(lambda: host.count("tracon_store_up") == 1)
    assert (await host.get("/tracon/api/meta", **fresh)).status == 200


async def test_a_tenant_that_sends_too_much_is_told_when_to_come_back(hosts: Hosts) -> None:
    """HTTP-4: each tenant by itself, and health not at all."""
    host = await hosts.open(rate_limit={"requests_per_second": 0.1, "burst": 2})
    eager, calm = await key(host), await key(host, tenant="zebra")
    statuses = [(await host.get("/tracon/api/agents", **eager)).status for _ in range(3)]
    assert statuses == [200, 200, 429]
    refused = await host.post("/tracon/api/agents/echo/run", {"message": "hi"}, **eager)
    assert (refused.status, refused.body["code"]) == (429, "rate_limited")
    assert 1 <= int(refused.headers["Retry-After"]) <= 10
    assert host.count("tracon_runs_started_total", agent="echo") == 0
    assert (await host.get("/tracon/api/agents", **calm)).status == 200
    assert (await host.get("/health/live", **eager)).status == 200


async def test_by_itself_there_is_no_rate_limit(host: Client) -> None:
    assert {(await host.get("/tracon/api/agents")).status for _ in range(50)} == {200}
