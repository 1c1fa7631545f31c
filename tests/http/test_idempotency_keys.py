"""A key follows its run when the host dies, and what stays uncertain is for operators (IDEM-5)."""

import asyncio
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from yarl import URL

from app.idempotency.keys import change_by
from app.idempotency.sweeper import Sweeper
from app.identity import new_run_id
from app.store.event_log import Change
from domain import events as e
from domain.failure import ErrorClass
from domain.idempotency import Key, KeyedRequest, Reserve
from domain.ids import DEFAULT_TENANT, RunId, Version, run_stream
from tests.domain import facts
from tests.http.client import Client, eventually
from tests.http.conftest import Hosts
from tests.http.keyed import BODY, begun, keyed, path_to, runs_of
from tests.http.test_auth import key as api_key

ORPHANED = e.RunFailed(error="its host is gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
CONTINUES = {
    "run_reconciliation": {"enabled": True},
    "run_continuation": {"enabled": True},
}


async def ended(host: Client, run_id: RunId) -> None:
    await eventually(lambda: host.host.roster.find(run_id) is None)


async def append(host: Client, run_id: RunId, *events: e.Event) -> None:
    """What another host recorded of the run."""
    log = host.host.services.log
    version = Version(len(await log.read_stream(run_stream(run_id))))
    await log.append(
        Change(stream_id=run_stream(run_id), expected=version, tenant=DEFAULT_TENANT, events=events)
    )


async def orphan(hosts: Hosts, host: Client, agent: str = "gated", key: str = "k") -> RunId:
    """A run whose host dies in the middle of it, and that somebody then closes."""
    dying = await hosts.open()
    run_id = await begun(dying, key, agent)
    await asyncio.wait_for(hosts.gate.reached.wait(), 10)
    await append(host, run_id, ORPHANED)
    hosts.gate.let_go.set()
    await ended(dying, run_id)
    return run_id


async def state_of_key(host: Client, key: str = "k") -> Any:
    await host.views_show("idempotency")
    await host.views_show("runs")
    [entry] = [one for one in (await host.get("/tracon/api/idempotency")).body["keys"] if one["key"] == key]
    return entry


async def test_a_run_that_ended_without_a_word_to_its_key_is_found_by_the_next_request(hosts: Hosts) -> None:
    """IDEM-5: rendered from its events, as its own host would have."""
    host, other = await hosts.open(), await hosts.open()
    await ended(host, run_id := await begun(host))
    answer = await keyed(other)
    assert (answer.status, answer.replayed, answer.json["id"]) == (200, True, str(run_id))
    assert (await keyed(host)).kept == answer.kept
    told = (await host.get(f"/tracon/api/runs/{run_id}")).body
    assert answer.json == {**told, "answer": "hi"}
    assert len(await runs_of(host)) == 1


async def test_or_by_the_sweep(hosts: Hosts) -> None:
    """IDEM-5"""
    host = await hosts.open()
    await ended(host, await begun(host))
    assert (await state_of_key(host))["state"] == "in_progress"
    assert await sweep(host) == 1
    assert (await state_of_key(host))["state"] == "completed"
    assert await sweep(host) == 0
    assert (await keyed(host)).replayed


async def sweep(host: Client) -> int:
    services = host.host.services
    settling = services.idempotency._settling
    return await Sweeper(services.pool, settling).sweep(late_s=0.0)


async def test_a_run_that_failed_without_a_word_frees_its_key(hosts: Hosts) -> None:
    """IDEM-5: a chain that ends Failed."""
    host = await hosts.open()
    await ended(host, await begun(host, agent="failing"))
    assert (await keyed(host, agent="failing")).status == 503
    assert len(await runs_of(host)) == 2


async def test_a_key_follows_the_run_that_goes_on_in_place_of_the_first(hosts: Hosts) -> None:
    """IDEM-5: a continuation that completes stores the response."""
    host = await hosts.open(**CONTINUES)
    first = await orphan(hosts, host)
    second = new_run_id()
    created = (await host.host.services.log.read_stream(run_stream(first), limit=1))[0].event
    assert isinstance(created, e.RunCreated)
    continuation = msgspec.structs.replace(created, continued_from_run_id=first)
    await append(host, second, continuation)
    await append(host, first, e.RunContinued(by=second))
    assert (await keyed(host, agent="gated")).status == 409
    definition = host.host.services.catalog.agent("gated")
    await append(host, second, e.RunStarted(host="another", definition=definition))
    assert (await keyed(host, agent="gated")).status == 409
    await append(host, second, e.RunCompleted(answer="at last"))
    answer = await keyed(host, agent="gated")
    assert (answer.status, answer.replayed) == (200, True)
    assert (answer.json["id"], answer.json["answer"]) == (str(second), "at last")
    assert answer.json["continued_from_run_id"] == str(first)
    assert (await state_of_key(host))["settled_by"] == str(second)


async def test_before_it_is_known_whether_another_goes_on_the_key_stays_with_the_first(hosts: Hosts) -> None:
    """IDEM-5: or both would run."""
    host = await hosts.open(**CONTINUES)
    first = await orphan(hosts, host)
    assert (await keyed(host, agent="gated")).status == 409
    await append(
        host, first, e.RunContinuationBlocked(cause=e.ContinuationBlock.NO_SESSION, reason="r", remedy="m")
    )
    answer = await keyed(host, agent="gated")
    assert (answer.status, answer.replayed) == (200, False)


async def test_where_nothing_is_continued_an_orphan_frees_its_key(hosts: Hosts) -> None:
    """IDEM-5"""
    host = await hosts.open()
    await orphan(hosts, host)
    answer = await keyed(host, agent="gated")
    assert (answer.status, answer.replayed) == (200, False)


async def test_a_call_that_nobody_knows_the_end_of_keeps_its_key_from_being_used_again(hosts: Hosts) -> None:
    """IDEM-5: what stays uncertain is listed, and an operator releases it."""
    host = await hosts.open()
    run_id = await orphan_in_doubt(host)
    assert (await keyed(host, agent="gated")).status == 409
    assert await sweep(host) == 0
    entry = await state_of_key(host)
    assert (entry["state"], entry["run_status"], entry["run_id"]) == ("in_progress", "Failed", str(run_id))
    listed = (await host.get("/tracon/api/idempotency?state=in_progress")).body
    assert [one["key"] for one in listed["keys"]] == ["k"]
    released = await host.post("/tracon/api/idempotency/k/release")
    assert (released.status, released.body) == (200, {"key": "k", "state": "released"})
    hosts.gate.let_go.set()
    assert (await keyed(host, agent="gated")).replayed is False


async def test_an_operator_who_knows_what_came_of_it_says_so(hosts: Hosts) -> None:
    """IDEM-5: completed by an operator."""
    host = await hosts.open()
    await orphan_in_doubt(host)
    told = await host.post(
        "/tracon/api/idempotency/k/complete", {"answer": {"refunded": True}, "status": 201}
    )
    assert (told.status, told.body["state"]) == (200, "completed")
    answer = await keyed(host, agent="gated")
    assert (answer.status, answer.replayed, answer.body) == (201, True, b'{"refunded":true}')
    entry = await state_of_key(host)
    assert (entry["state"], entry["status"], entry["by_operator"]) == ("completed", 201, True)


async def test_a_key_whose_doubt_was_resolved_waits_for_the_run_that_goes_on(hosts: Hosts) -> None:
    """IDEM-5: whoever resolved it had not gone on with it yet, or died: a free key would run it twice."""
    host = await hosts.open(**CONTINUES)
    first = await orphan_in_doubt(host, session_id="s")
    await append(host, first, DOUBTED, FOUND_OUT)
    assert (await keyed(host, agent="gated")).status == 409
    [by] = [
        one.event.by
        for one in await host.host.services.log.read_stream(run_stream(first))
        if isinstance(one.event, e.RunContinued)
    ]
    hosts.gate.let_go.set()
    await ended(host, by)
    answer = await keyed(host, agent="gated")
    assert (answer.status, answer.replayed, answer.json["id"]) == (200, True, str(by))
    assert len(await runs_of(host)) == 2


async def test_and_is_free_where_something_else_stands_against_going_on(hosts: Hosts) -> None:
    """IDEM-5, CONT-4"""
    host = await hosts.open(**CONTINUES)
    await append(host, await orphan_in_doubt(host), DOUBTED, FOUND_OUT)
    assert (await keyed(host, agent="gated")).status == 409
    hosts.gate.let_go.set()
    answer = await keyed(host, agent="gated")
    assert (answer.status, answer.replayed) == (200, False)


DOUBTED = e.RunContinuationBlocked(cause=e.ContinuationBlock.OUTCOME_UNKNOWN, reason="r", remedy="m")
FOUND_OUT = e.ToolResolved(call_id="c1", tool="gate", output="done")


async def orphan_in_doubt(host: Client, key: str = "k", session_id: str | None = None) -> RunId:
    """Recorded by a host that died while an external call was under way."""
    run_id, call, path = new_run_id(), facts.call("c1", "gate"), path_to("gated")
    definition = host.host.services.catalog.agent("gated")
    events: tuple[e.Event, ...] = (
        msgspec.structs.replace(facts.CREATED, tenant=DEFAULT_TENANT, agent="gated", session_id=session_id),
        e.RunStarted(host="gone", definition=definition),
        *facts.asked_for(call),
        msgspec.structs.replace(facts.invoking(call), effect=e.ToolEffect.EXTERNAL),
        ORPHANED,
    )
    reserve = Reserve(request=KeyedRequest.of(key, "POST", path, BODY), run_id=run_id, form="run")
    reservation = change_by(Key(), DEFAULT_TENANT, key, reserve)
    assert reservation is not None
    run = Change(stream_id=run_stream(run_id), expected=Version(0), tenant=DEFAULT_TENANT, events=events)
    await host.host.services.log.append(run, reservation)
    return run_id


async def test_what_is_live_or_settled_is_not_for_an_operator_to_decide(hosts: Hosts) -> None:
    """IDEM-5"""
    host = await hosts.open()
    async with hosts.in_background(keyed(host, agent="gated")) as first:
        await asyncio.wait_for(hosts.gate.reached.wait(), 10)
        for path, body in (("release", None), ("complete", {"answer": 1})):
            refused = await host.post(f"/tracon/api/idempotency/k/{path}", body)
            assert (refused.status, refused.body["code"]) == (409, "idempotency_key_in_progress")
        hosts.gate.let_go.set()
        await first
    refused = await host.post("/tracon/api/idempotency/k/release")
    assert (refused.status, refused.body["code"]) == (409, "idempotency_key_not_held")
    unknown = await host.post("/tracon/api/idempotency/nothing/release")
    assert (unknown.status, unknown.body["code"]) == (404, "idempotency_key_not_found")


@pytest.mark.parametrize("name", ["a/b", "a?b#c", "50%", "with space", 'q"q', "%2F"])
async def test_any_key_can_be_named_in_a_path(host: Client, name: str) -> None:
    """HTTP-5"""
    await orphan_in_doubt(host, name)
    url = URL(f"{host.host.url}/tracon/api/idempotency/{quote(name, safe='')}/release", encoded=True)
    async with host.session.post(url) as response:
        assert response.status == 200, await response.text()
        assert (await response.json())["key"] == name


async def test_operating_on_keys_is_for_operators_of_the_tenant(host: Client) -> None:
    """HTTP-2, HTTP-4"""
    await keyed(host, headers=await api_key(host))
    stranger = await api_key(host, tenant="zebra")
    await host.views_show("idempotency")
    assert (await host.get("/tracon/api/idempotency", **stranger)).body["keys"] == []
    assert (await host.post("/tracon/api/idempotency/k/release", **stranger)).status == 404


async def test_a_list_never_shows_what_was_answered(host: Client) -> None:
    await keyed(host)
    entry = await state_of_key(host)
    assert set(entry) == {
        "stream_id", "tenant", "key", "state", "method", "path", "fingerprint", "form", "run_id",
        "settled_by", "status", "reason", "by_operator", "events", "reserved_at", "settled_at", "run_status",
    }  # fmt: skip
    assert (entry["state"], entry["status"], entry["form"]) == ("completed", 200, "run")
