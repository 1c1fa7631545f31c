"""Trees of runs over HTTP: what is below a root, and what all of it has used (BUDGET, HTTP-5)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import ClientSession

from tests.hosts import OpenHost
from tests.http.client import Client
from tests.supervision.graphs import agent, asks, graph
from tracon import ToolContext, tool


@tool(name="render", effect="write")
def render(context: ToolContext) -> str:
    """Make a picture."""
    context.report_usage("0.25", "USD", "render")
    context.report_usage("0.5", "USD", "render")
    context.report_usage("3", "EUR", "render")
    return "a picture"


TREE = graph(
    agent("lead", agents=("artist", "helper"))
    + agent("artist", agents=("helper",), tools=("render",))
    + agent("helper"),
    lead=f"{asks('artist')}\n{asks('helper')}\ntext = 'all done'",
    artist=f"{asks('helper')}\ntool_call = {{ name = 'render' }}\ntext = 'painted'",
    helper="text = 'brushes'",
)


@pytest.fixture
async def client(host_of: OpenHost) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        host = await host_of(TREE, tools=(render,))
        yield Client(host, await stack.enter_async_context(ClientSession(base_url=host.url)))


async def tree_of(client: Client, run_id: str, query: str = "") -> dict[str, Any]:
    await client.views_show("runs")
    answer = await client.get(f"/tracon/api/runs/{run_id}/tree{query}")
    assert answer.status == 200, answer.body
    tree: dict[str, Any] = answer.body
    return tree


async def test_a_tree_shows_who_asked_whom_and_what_it_came_to(client: Client) -> None:
    root = (await client.run("lead")).body
    tree = await tree_of(client, root["id"])
    assert [(one["agent"], one["depth"], one["status"]) for one in tree["runs"]] == [
        ("lead", 0, "Completed"),
        ("artist", 1, "Completed"),
        ("helper", 1, "Completed"),
        ("helper", 2, "Completed"),
    ]
    lead, artist, first, below = tree["runs"]
    assert [one["parent_run_id"] for one in tree["runs"]] == [None, lead["id"], lead["id"], artist["id"]]
    assert {one["root_run_id"] for one in tree["runs"]} == {root["id"]} == {tree["root_run_id"]}
    totals = tree["totals"]
    assert (totals["runs"], totals["child_runs"], totals["live"]) == (4, 3, 0)
    assert totals["reported_cost"] == artist["reported_cost"] == "0.75"
    assert totals["usage"]["input_tokens"] == sum(one["usage"]["input_tokens"] for one in tree["runs"])
    assert first["id"] != below["id"]


async def test_a_tree_is_found_from_any_of_its_runs(client: Client) -> None:
    root = (await client.run("lead")).body
    tree = await tree_of(client, root["id"])
    assert await tree_of(client, tree["runs"][-1]["id"]) == tree


async def test_a_tree_may_be_read_in_parts(client: Client) -> None:
    """HTTP-2"""
    root = (await client.run("lead")).body
    whole = await tree_of(client, root["id"])
    part = await tree_of(client, root["id"], "?skip=1&take=2")
    assert part["runs"] == whole["runs"][1:3]
    assert (part["more"], part["totals"]) == (True, whole["totals"])


async def test_a_list_of_runs_may_be_of_roots_alone(client: Client) -> None:
    """HTTP-5: the runs below them are in their trees."""
    root = (await client.run("lead")).body
    await client.views_show("runs")
    assert [one["id"] for one in (await client.get("/tracon/api/runs?roots=true")).body["runs"]] == [
        root["id"]
    ]
    assert len((await client.get("/tracon/api/runs")).body["runs"]) == 4


async def test_a_run_that_is_not_there_has_no_tree(client: Client) -> None:
    """HTTP-2"""
    assert (await client.get(f"/tracon/api/runs/{uuid4()}/tree")).status == 404


async def test_what_tools_reported_is_in_the_statistics(client: Client) -> None:
    """BUDGET-3, BUDGET-8: also what does not count as cost."""
    await client.run("lead")
    await client.views_show("statistics")
    reported = (await client.get("/tracon/api/stats")).body["reported"]
    assert [(one["agent"], one["currency"], one["amount"], one["counted"]) for one in reported] == [
        ("artist", "EUR", "3", "0"),
        ("artist", "USD", "0.75", "0.75"),
    ]
