"""Agents that are defined over HTTP: versions in a stream, in force on every host at once."""

import asyncio
from typing import Any
from uuid import UUID

from app.keys.key import Scope
from domain import events as e
from domain.ids import RunId
from tests.hosts import OpenHost, follow, kinds, only
from tests.http.client import Answer, Client
from tests.http.conftest import Hosts
from tests.http.interrupted import client_of as client_of
from tests.http.test_auth import key

ECHO: dict[str, Any] = {"provider": "scripted", "model": "echo", "instructions": "Echo."}
PATH = "/tracon/api/agents"


async def put(client: Client, name: str = "mine", body: Any = ECHO, **headers: str) -> Answer:
    return await client.request("PUT", f"{PATH}/{name}", json=body, headers=headers)


async def remove(client: Client, name: str = "mine", **headers: str) -> Answer:
    return await client.request("DELETE", f"{PATH}/{name}", headers=headers)


async def test_an_agent_is_defined_and_run(host: Client) -> None:
    created = await put(host)
    assert (created.status, created.headers["ETag"]) == (201, '"1"')
    assert created.headers["Location"] == f"{PATH}/mine"
    assert created.body["definition"] == {"name": "mine", **ECHO}
    answer = await host.run("mine", "one two")
    assert (answer.status, answer.body["answer"]) == (200, "one two")
    read = await host.get(f"{PATH}/mine")
    assert (read.body, read.headers["ETag"]) == ({"name": "mine", **ECHO}, '"1"')
    await host.views_show("agents")
    assert "mine" in [agent["name"] for agent in (await host.get(PATH)).body["agents"]]
    models = (await host.get("/tracon/v1/models")).body["data"]
    assert "mine" in [model["id"] for model in models]
    chat = {"model": "mine", "messages": [{"role": "user", "content": "hi"}]}
    completed = await host.post("/tracon/v1/chat/completions", chat)
    assert completed.body["choices"][0]["message"]["content"] == "hi"


async def test_every_host_acts_on_a_change_from_the_moment_it_is_recorded(hosts: Hosts) -> None:
    one, other = await hosts.open(), await hosts.open()
    for number in range(1, 6):
        story = {**ECHO, "model": "story"} if number % 2 else ECHO
        assert (await put(one, body=story)).body["version"] == number
        said = (await other.run("mine", "hello")).body["answer"]
        assert said == ("Once upon a time." if number % 2 else "hello")
    assert (await remove(other)).body["version"] == 6
    assert (await one.run("mine")).body["code"] == "agent_not_found"


async def test_a_run_keeps_the_definition_that_it_began_with(hosts: Hosts) -> None:
    host = await hosts.open()
    gated = {"provider": "scripted", "model": "gated", "tools": ["gate"]}
    await put(host, body=gated)
    async with host.start("mine") as stream:
        await hosts.gate.reached.wait()
        await put(host)
        await remove(host)
        hosts.gate.let_go.set()
        frames = await stream.rest()
    assert frames[-1].event == "RunCompleted"
    assert frames[-1].data["data"]["answer"] == "It is through."


async def test_versions_are_kept_and_the_same_definition_is_none(host: Client) -> None:
    await put(host)
    again = await put(host)
    assert (again.status, again.body["version"]) == (200, 1)
    await put(host, body={**ECHO, "description": "Says it again."})
    await remove(host)
    third = await put(host)
    assert (third.status, third.body["version"]) == (201, 4)
    versions = (await host.get(f"{PATH}/mine/versions")).body
    told = [
        (one["version"], one["definition"] and one["definition"].get("description"))
        for one in versions["versions"]
    ]
    assert told == [(4, None), (3, None), (2, "Says it again."), (1, None)]
    assert versions["versions"][1]["definition"] is None
    part = (await host.get(f"{PATH}/mine/versions?skip=1&take=2")).body
    assert ([one["version"] for one in part["versions"]], part["more"]) == ([3, 2], True)


async def test_who_has_seen_an_older_version_changes_nothing(host: Client) -> None:
    """If-Match and If-None-Match: of several who change it, each knows what the others did."""
    await put(host)
    assert (await put(host, **{"If-None-Match": "*"})).status == 412
    await put(host, body={**ECHO, "description": "2"}, **{"If-Match": '"1"'})
    late = await put(host, body={**ECHO, "description": "late"}, **{"If-Match": '"1"'})
    assert (late.status, late.body["code"]) == (412, "version_mismatch")
    assert "version 2" in late.body["detail"]
    assert (await remove(host, **{"If-Match": '"1"'})).status == 412
    assert (await put(host, "other", **{"If-Match": "*"})).status == 412
    wrong = await put(host, **{"If-Match": "three"})
    assert (wrong.status, wrong.body["errors"][0]["field"]) == (400, "If-Match")
    assert (await remove(host, **{"If-Match": '"2"'})).status == 200


async def test_of_many_who_change_one_version_one_does(hosts: Hosts) -> None:
    clients = [await hosts.open(), await hosts.open()]
    await put(clients[0])
    answers = await asyncio.gather(
        *(
            put(clients[number % 2], body={**ECHO, "description": str(number)}, **{"If-Match": '"1"'})
            for number in range(6)
        )
    )
    assert sorted(answer.status for answer in answers) == [200, 412, 412, 412, 412, 412]
    assert len((await clients[0].get(f"{PATH}/mine/versions")).body["versions"]) == 2


FLAWS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"model": "unheard-of"}, "$.model"),
    ({"provider": "nobody"}, "$.provider"),
    ({"tools": ["gat"]}, "$.tools"),
    ({"agents": ["nobody"]}, "$.agents"),
    ({"deliverable_tool": "gate"}, "$.deliverable_tool"),
    ({"response_schema": {"type": "nothing"}}, "$.response_schema"),
    ({"fallbacks": [{"provider": "scripted", "model": "nope"}]}, "$.fallbacks.0.model"),
    ({"options": {"temperature": 9}}, "$.options.temperature"),
    ({"fallback_mode": "perhaps"}, "$.fallback_mode"),
    ({"instruction": "misspelt"}, "$.instruction"),
)


async def test_a_definition_is_checked_like_one_of_the_settings(host: Client) -> None:
    """HTTP-1: each error names its key."""
    for change, field in FLAWS:
        refused = await put(host, body={**ECHO, **change})
        assert refused.status == 400, refused.body
        assert field in [error["field"] for error in refused.body["errors"]], refused.body
    assert (await put(host, body={"model": "echo"})).body["errors"][0]["field"] == "$.provider"
    assert (await put(host, name=".hidden")).body["errors"][0]["field"] == "name"
    assert (await host.get(f"{PATH}/mine")).status == 404


async def test_agents_of_code_and_settings_are_read_only(hosts: Hosts) -> None:
    host = await hosts.open(agents={"set": {"name": "set", "provider": "scripted", "model": "echo"}})
    for name, source in (("set", "settings"), ("echo", "application")):
        for answer in (
            await put(host, name),
            await remove(host, name),
            await host.get(f"{PATH}/{name}/versions"),
        ):
            assert (answer.status, answer.body["code"]) == (409, "agent_read_only")
            assert f"defined in {source}" in answer.body["detail"]


async def test_a_tenants_agents_are_its_own(host: Client) -> None:
    """HTTP-2"""
    acme = await key(host, Scope.OPERATE, Scope.READ, Scope.RUN, tenant="acme")
    other = await key(host, Scope.OPERATE, Scope.READ, Scope.RUN, tenant="other")
    await put(host, **acme)
    assert (await host.get(f"{PATH}/mine", **other)).status == 404
    assert (await host.get(f"{PATH}/mine/versions", **other)).status == 404
    assert (await remove(host, **other)).status == 404
    assert (await host.post(f"{PATH}/mine/run", {"message": "x"}, **other)).status == 404
    assert (await put(host, body={**ECHO, "model": "story"}, **other)).body["version"] == 1
    ran = await host.post(f"{PATH}/mine/run", {"message": "x"}, **acme)
    assert ran.body["answer"] == "x"
    listed = (await host.get(f"{PATH}/mine/versions", **acme)).body["versions"]
    assert listed[0]["changed_by"] is not None
    reader = await key(host, Scope.READ, tenant="acme")
    assert (await put(host, **reader)).body["code"] == "scope_missing"


async def test_an_agent_may_ask_others_that_its_tenant_has_defined(host: Client) -> None:
    """HTTP-2: what it is given to ask is what they are when it begins, and no other tenant's."""
    acme, other = [
        await key(host, Scope.OPERATE, Scope.READ, Scope.RUN, tenant=name) for name in ("acme", "other")
    ]
    lead = {"provider": "scripted", "model": "lead", "agents": ["helper"]}
    unknown = await put(host, "boss", lead, **acme)
    assert (unknown.status, unknown.body["errors"][0]["field"]) == (400, "$.agents")
    await put(host, "helper", ECHO, **other)
    assert (await put(host, "boss", lead, **acme)).status == 400
    await put(host, "helper", ECHO, **acme)
    await put(host, "boss", lead, **acme)
    path = f"{PATH}/boss/run"
    asked = await host.post(path, {"message": "x"}, **acme)
    assert asked.body["answer"] == "It says: please"
    await put(host, "helper", {**ECHO, "model": "story"}, **acme)
    again = await host.post(path, {"message": "x"}, **acme)
    assert again.body["answer"] == "It says: Once upon a time."
    await remove(host, "helper", **acme)
    gone = await host.post(path, {"message": "x"}, **acme)
    assert "There is no tool 'helper'" in gone.body["answer"]


async def test_an_agent_that_is_asked_may_get_a_parameter_that_is_called_like_the_message(
    host: Client,
) -> None:
    """BUDGET-1: whoever asks it goes on, and what it is asked is what it is told."""
    await put(host, "helper")
    await put(host, "boss", {"provider": "scripted", "model": "lead", "agents": ["helper"]})
    await put(host, "helper", {**ECHO, "parameters": {"message": 3}})
    answer = await host.run("boss")
    assert (answer.status, answer.body["answer"]) == (200, "It says: please")


async def test_a_parameter_has_a_name_that_can_be_referred_to(host: Client) -> None:
    """TOOL-1: it is a field of the call of whichever model asks the agent."""
    for name in ("", "two words", "1st", "__x"):
        refused = await put(host, "named", {**ECHO, "parameters": {name: 1}})
        assert (refused.status, refused.body["code"]) == (400, "invalid_definition"), name
        assert [error["field"] for error in refused.body["errors"]] == ["$.parameters"]


async def test_workers_take_queued_runs_of_such_agents(hosts: Hosts) -> None:
    """JOB-1: on any host, also one that was there before the agent was."""
    api, _ = await hosts.open(worker=False), await hosts.open()
    await put(api)
    queued = await api.post(f"{PATH}/mine/run", {"message": "later"}, Prefer="respond-async")
    run_id = RunId(UUID(queued.body["id"]))
    assert only(await follow(api.host, run_id), e.RunCompleted) == [e.RunCompleted(answer="later")]
    batch = await api.post("/tracon/api/batches", {"agent": "mine", "items": [{"message": "one"}]})
    assert batch.status == 202
    item = RunId(UUID(batch.body["items"][0]["run_id"]))
    assert kinds(await follow(api.host, item))[-1] == "RunCompleted"


async def test_a_queued_run_of_an_agent_that_was_removed_fails(hosts: Hosts) -> None:
    api = await hosts.open(worker=False)
    await put(api)
    queued = await api.post(f"{PATH}/mine/run", {"message": "later"}, Prefer="respond-async")
    await remove(api)
    await hosts.open()
    [failed] = only(await follow(api.host, RunId(UUID(queued.body["id"]))), e.RunFailed)
    assert failed.error_type == "agent_not_found"


async def test_an_agent_whose_provider_is_gone_says_so(host_of: OpenHost, client_of: Any) -> None:
    """A definition outlives settings. Who runs it is told what it lacks, and nothing is begun."""
    provider = '[providers.{name}]\ntype = "scripted"\n[providers.{name}.models.echo]\n'
    first = await client_of(await host_of(provider.format(name="old")))
    assert (await put(first, body={"provider": "old", "model": "echo"})).status == 201
    later = await client_of(await host_of(provider.format(name="new")))
    refused = await later.run("mine")
    assert (refused.status, refused.body["code"]) == (400, "unusable_agent")
