"""What a request refers to in its body, its query or its path's end is another tenant's as well (HTTP-2)."""

from typing import Any

import pytest

from tests.http.client import STREAM, Client
from tests.http.conftest import Hosts
from tests.http.test_auth import key

RUN = "/tracon/api/agents/echo/run"


class Tenants:
    """Two of them, with a run, a response, a conversation and a batch each."""

    def __init__(self, host: Client, owner: dict[str, str], stranger: dict[str, str]) -> None:
        self.host = host
        self.owner = owner
        self.stranger = stranger
        self.theirs: dict[str, str] = {}
        self.own: dict[str, str] = {}

    async def fill(self) -> None:
        for headers, things in ((self.owner, self.theirs), (self.stranger, self.own)):
            items = {"agent": "echo", "items": [{"message": "private"}]}
            posted = {
                "run": (RUN, {"message": "private"}),
                "gated": ("/tracon/api/agents/gated/run", {"message": "private"}),
                "response": ("/tracon/v1/responses", {"model": "echo", "input": "private"}),
                "conversation": ("/tracon/v1/conversations", {}),
                "batch": ("/tracon/api/batches", items),
            }
            for name, (path, body) in posted.items():
                things[name] = (await self.host.post(path, body, **headers)).body["id"]
        for view in ("tools", "jobs"):
            await self.host.views_show(view)


@pytest.fixture
async def tenants(hosts: Hosts) -> Tenants:
    hosts.gate.let_go.set()
    host = await hosts.open()
    both = Tenants(host, await key(host), await key(host, tenant="zebra"))
    await both.fill()
    return both


async def test_nobody_goes_on_from_another_tenants_response_or_conversation(tenants: Tenants) -> None:
    """HTTP-2: it is refused as what was never there is."""
    for field, thing in (("previous_response_id", "response"), ("conversation", "conversation")):
        refused: list[Any] = []
        for named in (tenants.theirs[thing], f"{tenants.theirs[thing][:-8]}00000000"):
            body = {"model": "echo", "input": "hi", field: named}
            answer = await tenants.host.post("/tracon/v1/responses", body, **tenants.stranger)
            refused.append((answer.status, str(answer.body).replace(named, "ID")))
        assert refused[0] == refused[1]
        assert refused[0][0] == 404
        body = {"model": "echo", "input": "hi", field: tenants.own[thing]}
        assert (await tenants.host.post("/tracon/v1/responses", body, **tenants.stranger)).status == 200


async def test_nobody_compares_a_run_with_another_tenants(tenants: Tenants) -> None:
    """HTTP-2"""
    own, theirs = tenants.own["run"], tenants.theirs["run"]
    for one, other, status in ((own, theirs, 404), (theirs, own, 404), (own, own, 200)):
        path = f"/tracon/api/runs/{one}/compare/{other}"
        assert (await tenants.host.get(path, **tenants.stranger)).status == status


async def test_a_filter_finds_nothing_of_another_tenants(tenants: Tenants) -> None:
    """HTTP-2"""
    for path, field, things in (
        ("/tracon/api/tools?run_id=", "tool_calls", "gated"),
        ("/tracon/api/jobs?batch_id=", "jobs", "batch"),
    ):
        theirs = await tenants.host.get(path + tenants.theirs[things], **tenants.stranger)
        own = await tenants.host.get(path + tenants.own[things], **tenants.stranger)
        assert (theirs.status, theirs.body[field]) == (200, [])
        assert own.body[field] != []


async def test_nobody_watches_another_tenants_run(tenants: Tenants) -> None:
    """HTTP-2, HTTP-3"""
    run, response = tenants.theirs["run"], tenants.theirs["response"]
    for path in (f"/tracon/api/runs/{run}/events", f"/tracon/v1/responses/{response}?stream=true"):
        for method in ("GET", "HEAD"):
            headers = {**STREAM, **tenants.stranger}
            assert (await tenants.host.request(method, path, headers=headers)).status == 404, path
        assert (await tenants.host.request("GET", path, headers={**STREAM, **tenants.owner})).status == 200
