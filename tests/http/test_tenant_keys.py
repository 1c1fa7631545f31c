"""A tenant with a key of its own at a provider: its calls, its circuit, its places (BREAK-1, CONC-1)."""

import logging
from pathlib import Path
from typing import Any

import pytest

from app.keys.key import Scope
from app.models.accounts import Account
from app.models.adapters import ProviderMisconfigured
from domain.agent import AgentDefinition
from domain.breaker import CircuitStatus
from tests.http.client import Answer
from tests.http.test_auth import key
from tests.supervision.conftest import OpenWall
from tests.supervision.conftest import upstream as upstream
from tests.supervision.conftest import wall_of as wall_of
from tests.supervision.walls import Wall, provider
from tests.upstream.exchange import Exchange
from tests.upstream.registry import model
from tests.upstream.server import Upstream

OURS, ACMES, REVOKED = "sk-of-the-service", "sk-of-acme", "sk-revoked"


@model("wants-a-good-key")
async def _(exchange: Exchange) -> None:
    if REVOKED in str(exchange.attempt.headers):
        await exchange.refuse(401, "invalid_api_key")
    else:
        await exchange.text("All well.")
        await exchange.finish()


@model("wants-a-good-key-and-hangs")
async def _(exchange: Exchange) -> None:
    await exchange.hang()


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Path]:
    """A file for each key."""
    files = {name: tmp_path / name for name in (OURS, ACMES, REVOKED)}
    for name, file in files.items():
        file.write_text(name)
    return files


async def wall_with(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path], acme: str, **more: Any
) -> Wall:
    """A host whose provider has a key, and where tenant acme has another."""
    tenants = {"acme": {"api_key_file": str(keys[acme])}}
    shared = provider("chat", upstream, "p", api_key_file=str(keys[OURS]), tenants=tenants)
    agents = tuple(
        AgentDefinition(name=name, provider="p", model=name)
        for name in ("wants-a-good-key", "wants-a-good-key-and-hangs")
    )
    breaker = {"failure_threshold": 2, "break_duration": 30.0}
    return await wall_of(providers={"p": shared}, agents=agents, circuit_breaker=breaker, **more)


async def run_as(wall: Wall, headers: dict[str, str], agent: str = "wants-a-good-key") -> Answer:
    body = {"message": "hello"}
    return await wall.client.post(f"/tracon/api/agents/{agent}/run", body, **headers)


async def health(wall: Wall, headers: dict[str, str]) -> tuple[str, str]:
    """The circuit that the caller's runs pass: whose key, and how it stands."""
    (p,) = (await wall.client.get("/tracon/api/models/health", **headers)).body["providers"]
    return p["key"], p["circuit"]


def authorizations(upstream: Upstream, model: str = "wants-a-good-key") -> list[str]:
    return [attempt.headers["Authorization"] for attempt in upstream.log.of(model)]


async def test_a_tenants_calls_are_made_with_its_own_key_and_all_others_with_the_providers(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path]
) -> None:
    """BREAK-1."""
    wall = await wall_with(wall_of, upstream, keys, ACMES)
    for tenant in ("acme", "other", "acme"):
        assert (await run_as(wall, await key(wall.client, tenant=tenant))).status == 200
    assert authorizations(upstream) == [f"Bearer {ACMES}", f"Bearer {OURS}", f"Bearer {ACMES}"]


async def test_what_belongs_to_the_providers_key_is_not_sent_with_a_tenants(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path]
) -> None:
    """A provider refuses a key that comes with the name of somebody else's organization."""
    tenants = {
        "acme": {"api_key_file": str(keys[ACMES])},
        "globex": {"api_key_file": str(keys[ACMES]), "organization": "org-globex", "project": "proj-globex"},
    }
    ours = {"organization": "org-ours", "project": "proj-ours", "api_key_file": str(keys[OURS])}
    settings = provider("chat", upstream, "p", tenants=tenants, **ours)
    agent = AgentDefinition(name="wants-a-good-key", provider="p", model="wants-a-good-key")
    wall = await wall_of(providers={"p": settings}, agents=(agent,))
    for tenant in ("other", "acme", "globex"):
        assert (await run_as(wall, await key(wall.client, tenant=tenant))).status == 200
    sent = [
        tuple(attempt.headers.get(f"OpenAI-{name}") for name in ("Organization", "Project"))
        for attempt in upstream.log.of("wants-a-good-key")
    ]
    assert sent == [("org-ours", "proj-ours"), (None, None), ("org-globex", "proj-globex")]


async def test_a_tenants_bad_key_opens_its_own_circuit_and_nobody_elses(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path]
) -> None:
    """BREAK-1, BREAK-2: and each is shown the one that its own runs pass."""
    wall = await wall_with(wall_of, upstream, keys, REVOKED)
    acme, other = await key(wall.client, tenant="acme"), await key(wall.client, tenant="other")
    assert [(await run_as(wall, acme)).status for _ in range(3)] == [502, 502, 503]
    assert (await run_as(wall, other)).status == 200
    assert len(upstream.log.of("wants-a-good-key")) == 3, "the third of acme's was not made"
    assert await health(wall, acme) == ("own", "open")
    assert await health(wall, other) == ("shared", "closed")
    count = wall.client.count
    assert count("tracon_circuit_open", provider="p") == 0
    assert count("tracon_tenant_circuits_open", provider="p") == 1
    assert count("tracon_circuit_refused_total", provider="p") == 1


async def test_an_outage_for_all_others_does_not_shut_out_a_tenant_with_its_own_key(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path]
) -> None:
    """BREAK-1."""
    keys[OURS].write_text(REVOKED)
    wall = await wall_with(wall_of, upstream, keys, ACMES)
    acme, other = await key(wall.client, tenant="acme"), await key(wall.client, tenant="other")
    assert [(await run_as(wall, other)).status for _ in range(3)] == [502, 502, 503]
    assert (await run_as(wall, acme)).status == 200
    assert await health(wall, other) == ("shared", "open")
    assert await health(wall, acme) == ("own", "closed")
    assert wall.client.count("tracon_circuit_open", provider="p") == 1
    assert wall.client.count("tracon_tenant_circuits_open", provider="p") == 0


async def test_a_tenants_calls_take_no_place_of_the_others(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path]
) -> None:
    """CONC-1: the limit is of each key; what is shown is the sum."""
    concurrency = {"max_concurrent_calls_per_provider": 1}
    wall = await wall_with(wall_of, upstream, keys, ACMES, model_concurrency=concurrency)
    acme, other = await key(wall.client, tenant="acme"), await key(wall.client, tenant="other")
    hanging = "/tracon/api/agents/wants-a-good-key-and-hangs/run"
    async with wall.client.session.post(hanging, json={"message": "hello"}, headers=acme):
        while not upstream.log.of("wants-a-good-key-and-hangs"):
            await upstream.log.changed()
        assert wall.client.count("tracon_model_places_in_use", provider="p") == 1
        assert (await run_as(wall, other)).status == 200


async def test_no_key_is_told_anywhere_and_no_tenant_is_a_label(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    """HTTP-2: the operator's log has the tenant's name, and nothing else has."""
    caplog.set_level(logging.DEBUG)
    wall = await wall_with(wall_of, upstream, keys, REVOKED)
    acme, other = await key(wall.client, tenant="acme"), await key(wall.client, Scope.READ, tenant="other")
    failed = [await run_as(wall, acme) for _ in range(3)]
    told = [answer.body for answer in failed]
    for answer in failed:
        told += (await wall.client.get(f"/tracon/api/runs/{answer.body['run']['id']}/events", **acme)).body
    seen = await wall.client.get("/tracon/api/models/health", **other)
    shown = await wall.client.get("/metrics", **other)
    for secret in (OURS, REVOKED):
        assert secret not in f"{told}{seen.body}{shown.body}{caplog.text}"
    assert "acme" not in f"{seen.body}{shown.body}"
    (opened,) = [record for record in caplog.records if record.message == "circuit.opened"]
    assert (vars(opened)["provider"], vars(opened)["tenant"]) == ("p", "acme")


async def test_a_reply_to_one_tenant_is_never_given_to_another(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path]
) -> None:
    """BREAK-3: not between keys, and not between tenants that share one."""
    caching = AgentDefinition(name="a", provider="p", model="wants-a-good-key", cache_replies=True)
    tenants = {"acme": {"api_key_file": str(keys[ACMES])}}
    shared = provider("chat", upstream, "p", api_key_file=str(keys[OURS]), tenants=tenants)
    wall = await wall_of(providers={"p": shared}, agents=(caching,))
    for tenant in ("acme", "one", "two", "acme", "one", "two"):
        assert (await run_as(wall, await key(wall.client, tenant=tenant), "a")).status == 200
    assert authorizations(upstream) == [f"Bearer {ACMES}", f"Bearer {OURS}", f"Bearer {OURS}"]


async def test_a_tenants_missing_key_stops_the_start_and_is_named(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path]
) -> None:
    """Its calls are never made with the key of somebody else instead."""
    keys[ACMES].write_text("")
    with pytest.raises(ProviderMisconfigured, match=r"provider 'p', tenant 'acme'.*sk-of-acme is empty"):
        await wall_with(wall_of, upstream, keys, ACMES)


async def test_each_account_has_a_circuit_in_the_hosts_own_books(
    wall_of: OpenWall, upstream: Upstream, keys: dict[str, Path]
) -> None:
    """BREAK-1."""
    wall = await wall_with(wall_of, upstream, keys, REVOKED)
    await run_as(wall, await key(wall.client, tenant="acme"))
    circuits = wall.host.services.circuits
    assert circuits.health(Account("p", "acme")).consecutive_failures == 1
    assert circuits.health(Account("p")).consecutive_failures == 0
    assert circuits.health(Account("p")).circuit is CircuitStatus.CLOSED
