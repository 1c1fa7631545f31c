"""Workflows that are defined over HTTP: checked, versioned, in force on every host at once (WF-1)."""

from typing import Any

import asyncpg
import pytest

from app.settings.errors import SettingsError
from domain.events import WorkflowDefined, WorkflowRemoved
from domain.ids import workflow_stream
from domain.workflow.definition import WorkflowDefinition, WorkflowKind, WorkflowStage
from projections.base import Fact
from projections.definitions import Workflows
from projections.read.workflows import defined_workflows
from tests.http.client import Answer, Client
from tests.projections.story import in_one_log, stream
from tests.projections.tables import folded
from tests.workflows.conftest import Workshop, agent, function, person, sequence
from tests.workflows.test_queue import ASYNC, ended
from tests.workflows.test_running import of_type

PATH = "/tracon/api/workflows"
NODES = [agent("a"), function("b")]


async def put(client: Client, name: str = "mine", nodes: Any = NODES, **headers: str) -> Answer:
    body = {"kind": "sequential", "nodes": nodes}
    return await client.request("PUT", f"{PATH}/{name}", json=body, headers=headers)


async def run(client: Client, name: str = "mine", **headers: str) -> Answer:
    return await client.post(f"{PATH}/{name}/run", {"message": "hello"}, **headers)


async def test_a_workflow_is_defined_and_run_on_any_host(workshop: Workshop) -> None:
    """WF-1"""
    one, other = await workshop.open(), await workshop.open()
    created = await put(one)
    assert (created.status, created.headers["ETag"], created.body["version"]) == (201, '"1"', 1)
    assert created.headers["Location"] == f"{PATH}/mine"
    answer = await run(other)
    assert answer.body["answer"] == "noted echo of hello"
    [opened] = of_type(await other.events(answer.body["id"]), "WorkflowOpened")
    assert (opened["definition"]["name"], opened["definition_version"]) == ("mine", 1)
    read = await other.get(f"{PATH}/mine")
    assert (read.body["version"], read.headers["ETag"]) == (1, '"1"')
    await other.views_show("workflows")
    listed = (await other.get(PATH)).body["workflows"]
    assert [(one["name"], one["version"]) for one in listed] == [("mine", 1)]
    assert (await other.get(f"{PATH}/mine/graph")).status == 200


async def test_a_queued_run_of_it_is_taken_by_a_worker(workshop: Workshop) -> None:
    """JOB-1"""
    client = await workshop.open()
    await put(client)
    await client.views_show("workflows")
    queued = await run(client, **ASYNC)
    assert (await ended(client, queued.body["id"]))["status"] == "Completed"


async def test_what_is_wrong_is_told_with_its_key_and_nothing_is_saved(workshop: Workshop) -> None:
    """WF-1"""
    client = await workshop.open()
    refused = await put(client, nodes=[agent("a", "nobody"), function("a", "nothing"), {"name": "c"}])
    assert (refused.status, refused.body["code"]) == (400, "invalid_definition")
    assert {error["field"] for error in refused.body["errors"]} == {
        "$.nodes.0.agent",
        "$.nodes.1.name",
        "$.nodes.1.function",
        "$.nodes.2",
    }
    assert (await client.get(f"{PATH}/mine")).status == 404


async def test_a_workflow_has_no_more_nodes_than_a_host_can_look_at(workshop: Workshop) -> None:
    """WF-1"""
    client = await workshop.open()
    nodes = [function(f"n{number}", message="{{ input }}") for number in range(501)]
    assert (await put(client, nodes=nodes[:500])).status == 201
    refused = await put(client, nodes=nodes)
    assert (refused.status, refused.body["code"]) == (400, "invalid_definition")
    [error] = refused.body["errors"]
    assert (error["field"], error["message"]) == (
        "$.nodes",
        "a workflow has at most 500 nodes; this one has 501",
    )


async def test_a_workflow_and_an_agent_have_different_names(workshop: Workshop) -> None:
    """WF-1: whichever was there first, and wherever it is defined."""
    client = await workshop.open(sequence(function("a"), name="fixed"))
    greeter = {"provider": "scripted", "model": "echo"}
    await client.request("PUT", "/tracon/api/agents/greeter", json=greeter)
    for name in ("echo", "greeter"):
        refused = await put(client, name)
        assert (refused.status, refused.body["code"]) == (400, "invalid_definition")
        assert "an agent has this name" in refused.body["detail"]
    await put(client, "mine")
    for name in ("fixed", "mine"):
        refused = await client.request("PUT", f"/tracon/api/agents/{name}", json=greeter)
        assert (refused.status, refused.body["code"]) == (400, "invalid_definition")
        assert "a workflow has this name" in refused.body["detail"]
    await client.request("DELETE", f"{PATH}/mine")
    assert (await client.request("PUT", "/tracon/api/agents/mine", json=greeter)).status == 201


async def test_its_agents_may_be_of_the_tenants_own(workshop: Workshop) -> None:
    client = await workshop.open()
    greeter = {"provider": "scripted", "model": "yes", "parameters": {"tone": "dry"}}
    await client.request("PUT", "/tracon/api/agents/greeter", json=greeter)
    unknown = await put(client, nodes=[agent("a", "greeter", parameters={"mood": "good"})])
    assert [error["field"] for error in unknown.body["errors"]] == ["$.nodes.0.parameters.mood"]
    assert (await put(client, nodes=[agent("a", "greeter")])).status == 201
    assert (await run(client)).body["answer"] == "yes"
    await client.request("DELETE", "/tracon/api/agents/greeter")
    refused = await run(client)
    assert (refused.status, refused.body["errors"][0]["field"]) == (400, "$.nodes.0.agent")
    assert (await client.get(f"{PATH}/mine")).status == 200


async def test_a_change_is_a_version_and_the_same_again_is_none(workshop: Workshop) -> None:
    client = await workshop.open()
    assert (await put(client)).status == 201
    assert ((again := await put(client)).status, again.body["version"]) == (200, 1)
    assert (await put(client, nodes=[function("x")])).body["version"] == 2
    late = await put(client, nodes=[agent("y")], **{"If-Match": '"1"'})
    assert (late.status, late.body["code"]) == (412, "version_mismatch")
    removed = await client.request("DELETE", f"{PATH}/mine", headers={"If-Match": '"2"'})
    assert (removed.status, removed.body["version"], removed.body["definition"]) == (200, 3, None)
    assert (await run(client)).body["code"] == "workflow_not_found"
    versions = (await client.get(f"{PATH}/mine/versions")).body["versions"]
    assert [one["version"] for one in versions] == [3, 2, 1]


async def test_one_of_code_or_settings_is_read_only(workshop: Workshop) -> None:
    client = await workshop.open(sequence(agent("a"), name="mine"))
    refused = [await put(client), await client.request("DELETE", f"{PATH}/mine")]
    assert {(answer.status, answer.body["code"]) for answer in refused} == {(409, "workflow_read_only")}


async def test_a_run_that_goes_on_keeps_the_definition_that_its_chain_began_with(workshop: Workshop) -> None:
    """WF-3"""
    client = await workshop.open()
    await put(client, nodes=[person("ok"), function("b")])
    waits = (await run(client)).body["id"]
    await put(client, nodes=[agent("other")])
    await client.request("DELETE", f"{PATH}/mine")
    after = await client.post(f"{PATH}/runs/{waits}/respond", {"answer": "yes"})
    assert after.body["answer"] == "noted yes"


@pytest.mark.parametrize(
    ("settings", "key", "reason"),
    [
        ({"nodes": [{"name": "a", "agent": "nobody"}]}, "nodes.0.agent", "there is no agent 'nobody'"),
        ({"nodes": [{"name": "a", "function": "x"}]}, "nodes.0.function", "there is no function 'x'"),
    ],
)
async def test_a_host_with_a_workflow_that_names_what_is_not_there_does_not_start(
    workshop: Workshop, settings: dict[str, Any], key: str, reason: str
) -> None:
    """WF-1"""
    definition = {"name": "w", "kind": "sequential", **settings}
    with pytest.raises(SettingsError) as refused:
        await workshop.open(workflow_definitions={"w": definition})
    [problem] = refused.value.problems
    assert problem.key == f"workflow_definitions.w.{key}"
    assert problem.reason.startswith(reason)


def _defined(name: str, *descriptions: str, tenant: str = "acme") -> list[Fact]:
    events = [WorkflowDefined(definition=_workflow(name, one), by="key\0") for one in descriptions]
    return stream(*events, run_id=workflow_stream(tenant, name), tenant=tenant)


def _workflow(name: str, description: str = "") -> WorkflowDefinition:
    nodes = (WorkflowStage(name="a", agent="x"),)
    return WorkflowDefinition(name=name, kind=WorkflowKind.SEQUENTIAL, description=description, nodes=nodes)


async def test_the_last_version_is_the_row_wherever_pages_end(pool: asyncpg.Pool) -> None:
    """EVENT-6"""
    removed = stream(WorkflowRemoved(name="b"), run_id=workflow_stream("acme", "b"), after=1)
    facts = in_one_log(
        _defined("a", "one", "two \0"), _defined("b", "x"), removed, _defined("a", "z", tenant="zebra")
    )
    async with pool.acquire() as conn:
        together = await folded(conn, Workflows(), facts)
        assert await folded(conn, Workflows(), *([fact] for fact in facts)) == together
    assert await defined_workflows(pool, "acme") == ((_workflow("a", "two \0"), 2),)
    assert await defined_workflows(pool, "zebra") == ((_workflow("a", "z"), 1),)
