"""What becomes of requests under way when their key ends."""

import asyncio
import json

import pytest

from app.keys.key import Scope
from tests.http.client import STREAM, Client, Frame
from tests.http.conftest import Hosts
from tests.http.test_auth import ELSEWHERE, bearer, key

QUICK = {"auth": {"cache_ttl": 0.05}}
GATED = "/tracon/api/agents/gated/run"


async def revoke(host: Client, headers: dict[str, str]) -> None:
    prefix = headers["Authorization"].split()[1].rpartition("_")[0]
    assert (await host.request("DELETE", f"/tracon/api/keys/{prefix}", headers=await key(host))).status == 200


async def test_a_stream_ends_with_its_key_and_the_run_goes_on(hosts: Hosts) -> None:
    """HTTP-4: on every host, within auth.cache_ttl. Streams under other keys are not touched."""
    owner, other = await hosts.open(**QUICK), await hosts.open(**QUICK)
    revoked, kept = await key(owner), await key(owner)
    body = {"message": "hi"}
    async with owner.session.post(GATED, json=body, headers={**STREAM, **kept}) as own:
        run_id = own.headers["X-Run-Id"]
        await asyncio.wait_for(hosts.gate.reached.wait(), 20)
        path = f"/tracon/api/runs/{run_id}/events"
        async with other.session.get(path, headers={**STREAM, **revoked, **ELSEWHERE}) as watched:
            await revoke(owner, revoked)
            *_, last = (await asyncio.wait_for(watched.read(), 20)).decode().strip().split("\n\n")
        told = Frame.parse(last)
        assert (told.id, told.event, told.data["status"]) == (None, "error", 401)
        assert told.data["code"] == "unauthenticated"
        assert told.data["last_event_id"] >= 1
        hosts.gate.let_go.set()
        assert b"RunCompleted" in await asyncio.wait_for(own.read(), 20)


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
        ("responses", {"input": "hi"}),
    ],
)
async def test_so_does_a_stream_of_the_other_api(hosts: Hosts, path: str, asked: dict[str, object]) -> None:
    """HTTP-4"""
    host = await hosts.open(**QUICK, server={"sse_keepalive": 0.1})
    headers = await key(host)
    body = {"model": "gated", "stream": True, **asked}
    async with host.session.post(f"/tracon/v1/{path}", json=body, headers=headers) as response:
        await asyncio.wait_for(hosts.gate.reached.wait(), 20)
        await revoke(host, headers)
        told = (await asyncio.wait_for(response.read(), 20)).decode()
    last = json.loads(told.strip().rpartition("data: ")[2])
    assert (last.get("error") or last)["code"] == "unauthenticated"
    assert "[DONE]" not in told
    [actor] = host.host.roster
    assert (await host.get(f"/tracon/api/runs/{actor.run_id}", **await key(host))).body["status"] == "Running"


async def test_a_stream_ends_when_its_key_expires(hosts: Hosts) -> None:
    """HTTP-4: by the database's clock."""
    host = await hosts.open(**QUICK)
    made = await host.post(
        "/tracon/api/keys", {"name": "short", "expires_in": 1}, **await key(host, Scope.ADMIN)
    )
    headers = {**STREAM, **bearer(made.body["secret"])}
    async with host.session.post(GATED, json={"message": "hi"}, headers=headers) as response:
        told = (await asyncio.wait_for(response.read(), 20)).decode()
    assert '"code":"unauthenticated"' in told


async def test_who_waits_for_an_answer_under_a_key_that_ends_still_gets_it(hosts: Hosts) -> None:
    """HTTP-4: it was admitted. The next request is not."""
    host = await hosts.open(**QUICK)
    headers = await key(host)
    async with hosts.in_background(host.post(GATED, {"message": "hi"}, **headers)) as waiting:
        await asyncio.wait_for(hosts.gate.reached.wait(), 20)
        await revoke(host, headers)
        async with asyncio.timeout(20):
            while (await host.get("/tracon/api/meta", **headers)).status != 401:
                await asyncio.sleep(0.01)
        hosts.gate.let_go.set()
        assert (await waiting).body["status"] == "Completed"
