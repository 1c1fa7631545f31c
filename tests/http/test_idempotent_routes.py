"""The same promises on every route that takes keys (IDEM-1)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pytest
from openai import AsyncOpenAI

from app.http.openapi import describe
from app.http.routes import ROUTES
from tests.http.client import Client, eventually
from tests.http.conftest import Hosts
from tests.http.keyed import Raw, begun, keyed, path_to, runs_of, sent

ASYNC = {"Prefer": "respond-async"}


@dataclass(frozen=True)
class Surface:
    """A route, and how one asks an agent there."""

    name: str
    path: str
    agent: str
    asked: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200

    def body(self, agent: str, **more: object) -> bytes:
        named = {} if self.agent in self.path else {"model": agent}
        return msgspec.json.encode({**named, **self.asked, **more})

    async def ask(self, host: Client, agent: str = "echo", key: str = "k", **more: object) -> Raw:
        path = self.path.replace("AGENT", agent)
        return await sent(host, path, self.body(agent, **more), key, self.headers)


RUN = Surface("run", path_to("AGENT"), "AGENT", {"message": "hi"})
QUEUED = Surface("async", path_to("AGENT"), "AGENT", {"message": "hi"}, ASYNC, 202)
CHAT = Surface("chat", "/tracon/v1/chat/completions", "-", {"messages": [{"role": "user", "content": "hi"}]})
RESPONSE = Surface("response", "/tracon/v1/responses", "-", {"input": "hi"})
SURFACES = [RUN, QUEUED, CHAT, RESPONSE]
WAITING = [RUN, CHAT, RESPONSE]


def named(surface: Surface) -> str:
    return surface.name


@pytest.mark.parametrize("surface", SURFACES, ids=named)
async def test_any_host_gives_the_first_answer_again(hosts: Hosts, surface: Surface) -> None:
    """IDEM-1, IDEM-3: status, body, content type, Location, Preference-Applied."""
    one, other = await hosts.open(), await hosts.open()
    first = await surface.ask(one)
    again = [await surface.ask(host) for host in (one, other)]
    assert (first.status, first.replayed) == (surface.status, False)
    assert [answer.kept for answer in again] == [first.kept] * 2
    assert [answer.replayed for answer in again] == [True, True]
    assert len(await runs_of(one)) == 1


@pytest.mark.parametrize("surface", WAITING, ids=named)
async def test_while_it_is_in_progress_clients_of_both_worlds_know_when_to_come_again(
    hosts: Hosts, surface: Surface
) -> None:
    """IDEM-3"""
    host = await hosts.open()
    async with hosts.in_background(surface.ask(host, "gated")) as first:
        await asyncio.wait_for(hosts.gate.reached.wait(), 10)
        refused = await surface.ask(host, "gated")
        assert (refused.status, refused.headers["Retry-After"]) == (409, "1")
        assert refused.headers.get("X-Should-Retry") != "false"
        assert refused.json["error"]["type"] == "idempotency_error"
        assert refused.json["error"]["code"] == "idempotency_key_in_progress"
        hosts.gate.let_go.set()
        answer = await first
    assert (await surface.ask(host, "gated")).kept == answer.kept


@pytest.mark.parametrize("surface", SURFACES, ids=named)
async def test_another_body_or_another_path_is_another_request(host: Client, surface: Surface) -> None:
    """IDEM-3"""
    await surface.ask(host)
    refused = await surface.ask(host, session_id="s") if "AGENT" in surface.path else (
        await surface.ask(host, user="u")
    )  # fmt: skip
    assert (refused.status, refused.json["error"]["type"]) == (422, "idempotency_error")
    elsewhere = CHAT if surface is not CHAT else RESPONSE
    assert (await elsewhere.ask(host)).status == 422
    assert len(await runs_of(host)) == 1


@pytest.mark.parametrize("surface", SURFACES, ids=named)
async def test_a_broken_repetition_is_another_request_before_it_is_a_broken_one(
    host: Client, surface: Surface
) -> None:
    """IDEM-3: the key is looked at first, whatever the route."""
    await surface.ask(host)
    refused = await sent(host, surface.path.replace("AGENT", "echo"), b'{"', "k", surface.headers)
    assert (refused.status, refused.json["error"]["type"]) == (422, "idempotency_error")


@pytest.mark.parametrize("surface", [CHAT, RESPONSE, RUN, QUEUED], ids=named)
async def test_a_stream_cannot_be_kept(host: Client, surface: Surface) -> None:
    """IDEM-3: body has stream: true. Nothing runs, and the key is free."""
    refused = await surface.ask(host, stream=True)
    assert (refused.status, refused.json["error"]["code"]) == (400, "idempotency_key_invalid")
    assert (await surface.ask(host)).status == surface.status
    assert len(await runs_of(host)) == 1


@pytest.mark.parametrize("surface", SURFACES, ids=named)
async def test_where_it_is_switched_off_nothing_runs(hosts: Hosts, surface: Surface) -> None:
    """IDEM-3: header present, feature off."""
    host = await hosts.open(idempotency={"enabled": False})
    assert (await surface.ask(host)).status == 501
    assert await runs_of(host) == []


@pytest.mark.parametrize("surface", SURFACES, ids=named)
async def test_a_refused_request_holds_no_key(host: Client, surface: Surface) -> None:
    """IDEM-3: the reservation comes after validation and admission."""
    assert (await surface.ask(host, agent="nobody")).status == 404
    assert (await surface.ask(host, nonsense=True)).status == 400
    assert (await surface.ask(host)).status == surface.status


@pytest.mark.parametrize("surface", WAITING, ids=named)
async def test_what_came_to_no_success_is_not_kept(host: Client, surface: Surface) -> None:
    """IDEM-3: non-2xx releases the reservation."""
    answers = [await surface.ask(host, "rejecting") for _ in range(2)]
    assert [(answer.status, answer.replayed) for answer in answers] == [(422, False)] * 2
    assert len(await runs_of(host)) == 2


async def test_a_queued_run_is_accepted_once_and_its_answer_stays_what_it_was(host: Client) -> None:
    """IDEM-1, JOB-1: the queued 202 is what a repeat gets back, whatever the run has come to since."""
    first = await QUEUED.ask(host)
    run_id = first.headers["X-Run-Id"]
    assert first.headers["Preference-Applied"] == "respond-async"
    assert first.headers["Location"].endswith(run_id)
    async with host.watch(run_id) as stream:
        assert (await stream.rest())[-1].event == "RunCompleted"
    again = await QUEUED.ask(host)
    assert (again.kept, again.replayed) == (first.kept, True)
    assert len(await runs_of(host)) == 1


async def test_a_queued_run_that_fails_does_not_free_its_key(host: Client) -> None:
    """IDEM-1: it was accepted, and that is what was answered."""
    first = await QUEUED.ask(host, "rejecting")
    async with host.watch(first.headers["X-Run-Id"]) as stream:
        assert (await stream.rest())[-1].event == "RunFailed"
    assert (await QUEUED.ask(host, "rejecting")).kept == first.kept


async def test_responses_that_go_on_from_one_another_are_each_begun_once(host: Client) -> None:
    """IDEM-1: the key is reserved together with the place in the conversation."""
    first = await RESPONSE.ask(host, key="one")
    go_on = {"previous_response_id": first.json["id"], "input": "and then?"}
    second = [await RESPONSE.ask(host, key="two", **go_on) for _ in range(2)]
    assert second[0].kept == second[1].kept
    other = await RESPONSE.ask(host, key="three", **go_on)
    assert (other.status, other.json["id"] == second[0].json["id"]) == (200, False)
    assert len(await runs_of(host)) == 3


async def test_the_official_client_comes_again_until_the_answer_is_there(hosts: Hosts) -> None:
    """IDEM-3: it waits for Retry-After, and gets the answer of the run that was begun first."""
    host = await hosts.open()
    client = AsyncOpenAI(base_url=f"{host.host.url}/tracon/v1", api_key="unused", max_retries=5)
    async with client:
        create = client.chat.completions.create
        asked = {"model": "gated", "messages": [{"role": "user", "content": "hi"}]}
        key = {"Idempotency-Key": "k"}
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(create(**asked, extra_headers=key))  # type: ignore[call-overload]
            await asyncio.wait_for(hosts.gate.reached.wait(), 10)
            again = tasks.create_task(create(**asked, extra_headers=key))  # type: ignore[call-overload]
            refused = {"outcome": "in_progress"}
            await eventually(lambda: host.count("tracon_idempotent_requests_total", **refused) >= 1)
            hosts.gate.let_go.set()
    assert again.result() == first.result()
    assert len(await runs_of(host)) == 1


async def test_a_key_that_another_route_left_in_progress_is_settled_in_that_routes_words(
    hosts: Hosts,
) -> None:
    """IDEM-5: what the answer looks like is on record with the key."""
    host = await hosts.open()
    run_id = await begun(host, agent="echo")
    await eventually(lambda: host.host.roster.find(run_id) is None)
    answer = await keyed(host, headers=ASYNC)
    assert (answer.status, answer.replayed, answer.json["answer"]) == (200, True, "hi")


def test_the_routes_that_take_keys_are_these_and_say_so() -> None:
    """IDEM-1"""
    keyed_paths = {route.path for route in ROUTES if route.keyed}
    assert keyed_paths == {
        "/api/agents/{name}/run",
        "/v1/chat/completions",
        "/v1/responses",
        "/api/workflows/{name}/run",
        "/api/workflows/runs/{id}/resume",
        "/api/workflows/runs/{id}/respond",
    }
    described = describe(ROUTES, prefix="", version="1")["paths"]
    for path in keyed_paths:
        headers = {parameter["name"] for parameter in described[path]["post"]["parameters"]}
        assert "Idempotency-Key" in headers
        assert {"400", "409", "422", "501", "503"} <= described[path]["post"]["responses"].keys()
