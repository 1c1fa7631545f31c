"""A request that is sent again with its key runs once and is answered as the first time (IDEM)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from asyncpg.transaction import Transaction

from app.http.errors import BadIdempotencyKey
from app.http.idempotency import key_in
from app.keys.key import Scope
from domain.ids import DEFAULT_TENANT, idempotency_stream
from tests.http.client import Client, eventually
from tests.http.conftest import Hosts
from tests.http.keyed import BODY, keyed, path_to, runs_of
from tests.http.test_auth import key as api_key
from tests.queries import APPEND, STREAM, Queries
from tests.queries import queries as queries
from tests.store.proxy import Proxy


async def test_a_repetition_gets_the_first_answer_byte_for_byte(host: Client) -> None:
    """IDEM-3: same request, completed 2xx."""
    first = await keyed(host)
    again = await keyed(host)
    assert (first.status, first.json["answer"]) == (200, "hi")
    assert (first.replayed, again.replayed) == (False, True)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.kept == first.kept
    assert again.headers["X-Run-Id"] == first.headers["X-Run-Id"]
    assert len(await runs_of(host)) == 1


async def test_any_host_repeats_what_another_has_answered(hosts: Hosts) -> None:
    """IDEM-4"""
    one, other = await hosts.open(), await hosts.open()
    first, again = await keyed(one), await keyed(other)
    assert (again.kept, again.replayed) == (first.kept, True)
    assert len(await runs_of(one)) == 1


async def test_with_a_key_the_answer_is_one_body_whatever_else_the_client_would_take(host: Client) -> None:
    """IDEM-2"""
    answer = await keyed(host, headers={"Accept": "text/event-stream"})
    assert answer.headers["Content-Type"] == "application/json"
    run = (await host.get(f"/tracon/api/runs/{answer.headers['X-Run-Id']}")).body
    assert answer.json["id"] == run["id"]
    events = await host.events(run["id"])
    assert events[0]["data"]["streaming"] is False


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_while_the_first_is_in_progress_a_repetition_is_told_to_come_again(
    hosts: Hosts, elsewhere: bool
) -> None:
    """IDEM-3: same key still in progress: 409, in the words of both worlds, with Retry-After."""
    host = await hosts.open()
    other = await hosts.open() if elsewhere else host
    async with hosts.in_background(keyed(host, agent="gated")) as first:
        await asyncio.wait_for(hosts.gate.reached.wait(), 10)
        refused = await keyed(other, agent="gated")
        assert (refused.status, refused.headers["Retry-After"]) == (409, "1")
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.json["code"] == "idempotency_key_in_progress"
        assert refused.headers["X-Run-Id"] == (await runs_of(host))[0]["id"]
        assert refused.json["error"] == {
            "message": refused.json["detail"],
            "type": "idempotency_error",
            "param": None,
            "code": "idempotency_key_in_progress",
        }
        hosts.gate.let_go.set()
        answer = await first
    again = await keyed(other, agent="gated")
    assert (again.kept, again.replayed) == (answer.kept, True)


OTHERS: list[dict[str, Any]] = [
    {"body": b'{"message":"hi"}'},
    {"body": b'{"message": "ho"}'},
    {"agent": "story"},
]


@pytest.mark.parametrize("other", OTHERS)
async def test_a_key_is_not_for_another_request(host: Client, other: dict[str, Any]) -> None:
    """IDEM-3: same key, other path or body. Other bytes are another body, even if they mean the same."""
    await keyed(host)
    refused = await keyed(host, **other)
    assert (refused.status, refused.json["code"]) == (422, "idempotency_key_reused")
    assert refused.json["error"]["type"] == "idempotency_error"
    assert len(await runs_of(host)) == 1


async def test_a_key_in_progress_is_not_for_another_request_either(hosts: Hosts) -> None:
    """IDEM-3"""
    host = await hosts.open()
    async with hosts.in_background(keyed(host, agent="gated")):
        await asyncio.wait_for(hosts.gate.reached.wait(), 10)
        assert (await keyed(host, agent="echo")).status == 422


@pytest.mark.parametrize("bad", ["", '""', "k" * 256, "ключ", "a\tb", '"open', '"a"b'])
async def test_a_key_that_cannot_be_used_is_refused_and_nothing_runs(host: Client, bad: str) -> None:
    """IDEM-3: key longer than idempotency.max_key_length, or empty."""
    refused = await keyed(host, bad)
    assert (refused.status, refused.json["code"]) == (400, "idempotency_key_invalid")
    assert await runs_of(host) == []


async def test_two_keys_are_none(host: Client) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), ("Content-Type", "application/json")]
    answer = await host.request("POST", path_to("echo"), data=BODY, headers=headers)
    assert (answer.status, answer.body["code"]) == (400, "idempotency_key_invalid")


async def test_how_long_a_key_may_be_is_a_setting(hosts: Hosts) -> None:
    """IDEM-3"""
    host = await hosts.open(idempotency={"max_key_length": 8})
    assert (await keyed(host, "k" * 8)).status == 200
    assert (await keyed(host, "k" * 9)).status == 400
    assert (await keyed(host, '"qqqqqqqq"')).status == 200  # the quotes are not part of it


@pytest.mark.parametrize(
    ("written", "key"),
    [("k-1", "k-1"), ('"k-1"', "k-1"), ('"a \\"b\\" \\\\"', 'a "b" \\'), ("  spaced out ", "spaced out")],
)
def test_a_key_may_be_written_in_quotes_or_without(written: str, key: str) -> None:
    """IDEM-3"""
    assert key_in([written], 255) == key


@pytest.mark.parametrize("values", [[], ["a", "a"], ['"a\\b"'], ["a\x00"], ["\x7f"], ["a\ud800"]])
def test_what_is_no_single_printable_key_is_refused(values: list[str]) -> None:
    """IDEM-3"""
    with pytest.raises(BadIdempotencyKey):
        key_in(values, 255)


async def test_in_quotes_it_is_the_same_key(host: Client) -> None:
    """IDEM-3"""
    first = await keyed(host, "k-1")
    assert (await keyed(host, '"k-1"')).kept == first.kept


async def test_a_stream_cannot_be_kept(host: Client) -> None:
    """IDEM-3: body has stream: true."""
    refused = await keyed(host, body=b'{"message": "hi", "stream": true}')
    assert (refused.status, refused.json["code"]) == (400, "idempotency_key_invalid")
    assert await runs_of(host) == []
    assert (await keyed(host)).status == 200


async def test_where_it_is_switched_off_nothing_runs(hosts: Hosts) -> None:
    """IDEM-3: header present, feature off."""
    host = await hosts.open(idempotency={"enabled": False})
    refused = await keyed(host)
    assert (refused.status, refused.json["code"]) == (501, "not_wired")
    assert await runs_of(host) == []
    assert (await host.run("echo")).status == 200


@pytest.mark.parametrize(("agent", "status"), [("failing", 503), ("rejecting", 422), ("filtered", 422)])
async def test_what_came_to_no_success_is_not_kept(host: Client, agent: str, status: int) -> None:
    """IDEM-3: non-2xx releases the reservation."""
    first, again = await keyed(host, agent=agent), await keyed(host, agent=agent)
    assert (first.status, again.status) == (status, status)
    assert (first.replayed, again.replayed) == (False, False)
    assert first.json["run"]["id"] != again.json["run"]["id"]
    assert first.json["instance"] == path_to(agent)
    assert len(await runs_of(host)) == 2
    assert (await keyed(host, agent="echo")).status == 200


async def test_a_run_that_is_cancelled_frees_its_key(hosts: Hosts) -> None:
    """IDEM-3: a retry runs anew."""
    host = await hosts.open()
    async with hosts.in_background(keyed(host, agent="gated")) as first:
        await asyncio.wait_for(hosts.gate.reached.wait(), 10)
        [actor] = host.host.roster
        await host.post(f"/tracon/api/runs/{actor.run_id}/cancel")
        assert ((await first).status, (await first).json["code"]) == (409, "run_cancelled")
    hosts.gate.let_go.set()
    again = await keyed(host, agent="gated")
    assert (again.status, again.replayed) == (200, False)


@pytest.mark.parametrize(
    ("agent", "body", "status"),
    [("nobody", BODY, 404), ("echo", b'{"message": ""}', 400), ("echo", b"{", 400), ("echo", b"[1]", 400)],
)
async def test_a_request_that_is_refused_holds_no_key(
    host: Client, agent: str, body: bytes, status: int
) -> None:
    """IDEM-3: the reservation comes after validation and admission."""
    assert (await keyed(host, agent=agent, body=body)).status == status
    assert (await keyed(host)).status == 200


async def test_a_tenant_over_its_rate_holds_no_key(hosts: Hosts) -> None:
    """IDEM-3"""
    host = await hosts.open(rate_limit={"requests_per_second": 0.01, "burst": 1})
    headers = await api_key(host)
    assert (await host.get("/tracon/api/agents", **headers)).status == 200
    assert (await keyed(host, headers=headers)).status == 429
    assert await host.host.services.log.read_stream(idempotency_stream("acme", "k")) == []


async def test_a_host_that_drains_repeats_what_is_kept_and_begins_nothing(hosts: Hosts) -> None:
    """IDEM-3, DRAIN-1"""
    host = await hosts.open(drain={"enabled": True})
    first = await keyed(host)
    host.host.drain.begin()
    assert (await keyed(host)).kept == first.kept
    assert (await keyed(host, "another")).status == 503
    assert await host.host.services.log.read_stream(idempotency_stream(DEFAULT_TENANT, "another")) == []


async def test_without_the_store_nothing_runs(hosts: Hosts, proxy: Proxy) -> None:
    """IDEM-4: a key that cannot be looked up is no licence to run."""
    host = await hosts.open(dsn=proxy.dsn)
    first = await keyed(host)
    await proxy.refuse()
    for key in ("k", "fresh"):
        refused = await keyed(host, key)
        assert (refused.status, refused.json["code"]) == (503, "store_unavailable")
        assert int(refused.headers["Retry-After"]) >= 1
    assert host.count("tracon_runs_started_total", agent="echo") == 1
    await proxy.accept()
    await eventually(lambda: host.count("tracon_store_up") == 1)
    assert (await keyed(host)).kept == first.kept
    assert (await keyed(host, "fresh")).replayed is False


class Held:
    """Nothing can be stored before the test lets it."""

    def __init__(self, pool: asyncpg.Pool, transaction: Transaction) -> None:
        self._pool = pool
        self._transaction = transaction

    async def reached(self) -> None:
        """Somebody waits to store something."""
        async with asyncio.timeout(10):
            while not await self._pool.fetchval(WAITING):
                await asyncio.sleep(0.01)

    async def let_go(self) -> None:
        await self._transaction.rollback()


@pytest.fixture
async def held(pool: asyncpg.Pool, hosts: Hosts) -> AsyncIterator[Callable[[], Awaitable[Held]]]:
    """From the call on, until the test lets go or ends."""
    async with pool.acquire() as conn:
        transaction = conn.transaction()

        async def hold() -> Held:
            await transaction.start()
            await conn.execute("LOCK TABLE stored_events IN SHARE MODE")
            return Held(pool, transaction)

        yield hold


WAITING = """
SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'stored_events'::regclass
"""


async def test_a_reservation_whose_answer_is_lost_is_made_once(
    hosts: Hosts, proxy: Proxy, held: Callable[[], Awaitable[Held]]
) -> None:
    """IDEM-4: every connection breaks while the run and its key are being stored."""
    host, other = await hosts.open(dsn=proxy.dsn), await hosts.open()
    storing = await held()
    async with hosts.in_background(keyed(host)) as first:
        await storing.reached()
        proxy.cut()
        await storing.let_go()
        answer = await first
    assert (answer.status, answer.replayed) == (200, False)
    assert (await keyed(other)).kept == answer.kept
    assert [run["status"] for run in await runs_of(other)] == ["Completed"]


async def test_two_tenants_keys_of_one_name_are_two(host: Client) -> None:
    """IDEM-3: identity is tenant and key."""
    ours, theirs = await api_key(host), await api_key(host, tenant="zebra")
    first, other = await keyed(host, headers=ours), await keyed(host, headers=theirs)
    assert (first.json["tenant"], other.json["tenant"]) == ("acme", "zebra")
    assert (first.replayed, other.replayed) == (False, False)
    assert (await keyed(host, headers=ours)).kept == first.kept


async def test_a_client_that_hangs_up_finds_its_answer_later(hosts: Hosts) -> None:
    """IDEM-6"""
    host = await hosts.open()
    async with hosts.in_background(keyed(host, agent="gated")):
        await asyncio.wait_for(hosts.gate.reached.wait(), 10)
    gone = {"method": "POST", "route": "/tracon/api/agents/{name}/run", "status": "499"}
    await eventually(lambda: host.count("tracon_http_requests_total", **gone) == 1)
    assert (await keyed(host, agent="gated")).status == 409
    hosts.gate.let_go.set()
    await eventually(lambda: len(host.host.roster) == 0)
    answer = await keyed(host, agent="gated")
    assert (answer.status, answer.replayed, answer.json["answer"]) == (200, True, "It is through.")
    assert len(await runs_of(host)) == 1


async def test_a_client_that_hangs_up_while_its_run_is_opened_finds_its_answer_too(
    hosts: Hosts, held: Callable[[], Awaitable[Held]]
) -> None:
    """IDEM-6: at the worst moment, when the run is about to be recorded."""
    host, other = await hosts.open(), await hosts.open()
    storing = await held()
    async with hosts.in_background(keyed(host)):
        await storing.reached()
    await storing.let_go()
    async with asyncio.timeout(10):
        while (answer := await keyed(other)).status == 409:
            await asyncio.sleep(0.01)
    assert (answer.status, answer.replayed) == (200, True)
    assert len(await runs_of(other)) == 1


async def test_hosts_that_race_for_a_key_run_it_once(hosts: Hosts) -> None:
    """IDEM-4: exactly one runs."""
    one, other = await hosts.open(), await hosts.open()
    for number in range(10):
        key = f"k{number}"
        answers = await asyncio.gather(*(keyed(host, key) for host in (one, other) * 4))
        assert {answer.status for answer in answers} <= {200, 409}
        assert sum(answer.status == 200 and not answer.replayed for answer in answers) == 1
        kept = {answer.kept for answer in answers if answer.status == 200}
        assert kept == {(await keyed(one, key)).kept}
    assert len(await runs_of(one)) == 10


async def test_without_the_header_nothing_of_this_is_asked(queries: Queries, hosts: Hosts) -> None:
    """IDEM-4: no query. With a key there is one before the run, one at its end, and one append more."""
    host = await hosts.open()
    await host.run("echo")
    the_key = f"{STREAM} {idempotency_stream(DEFAULT_TENANT, 'k')}"
    with queries.made() as plain:
        await host.run("echo")
    with queries.made() as first:
        await keyed(host)
    with queries.made() as again:
        await keyed(host)
    assert set(plain) == {APPEND}
    assert (first.count(the_key), first.count(APPEND)) == (2, plain.count(APPEND) + 1)
    assert again == [the_key]


async def test_the_header_means_nothing_where_it_is_not_for(host: Client) -> None:
    """IDEM-1"""
    for path in ("/tracon/api/runs", "/tracon/api/agents", "/health/live"):
        assert (await host.get(path, **{"Idempotency-Key": "k"})).status == 200
    made = await host.post("/tracon/api/keys", {"name": "ci"}, **{"Idempotency-Key": "k"})
    assert made.status == 201
    assert (await keyed(host)).replayed is False


async def test_what_became_of_requests_with_keys_is_counted_and_no_key_is_told(host: Client) -> None:
    """IDEM-3"""
    await keyed(host, "secret-key")
    await keyed(host, "secret-key")
    await keyed(host, "secret-key", body=b"{}")
    counts = {
        outcome: host.count("tracon_idempotent_requests_total", outcome=outcome)
        for outcome in ("executed", "replayed", "in_progress", "reused")
    }
    assert counts == {"executed": 1, "replayed": 1, "in_progress": 0, "reused": 1}
    assert b"secret-key" not in (await host.get("/metrics", Accept="*/*")).body


@pytest.mark.parametrize(("enabled", "replayed"), [(False, True), (True, False)])
async def test_an_answer_that_is_old_enough_is_given_no_more(
    hosts: Hosts, enabled: bool, replayed: bool
) -> None:
    """IDEM-5: retention is off, unless somebody switches it on."""
    host = await hosts.open(idempotency={"retention_enabled": enabled, "retention": 1e-6})
    first, again = await keyed(host), await keyed(host)
    assert again.replayed is replayed
    assert (again.kept == first.kept) is replayed


async def test_retention_is_a_day_when_it_is_on(hosts: Hosts, pool: asyncpg.Pool) -> None:
    """IDEM-5: by the database's clock."""
    host = await hosts.open(idempotency={"retention_enabled": True})
    first = await keyed(host)
    for ago, replayed in (("23 hours 59 minutes", True), ("1 minute", False)):
        async with pool.acquire() as conn, conn.transaction():
            await conn.execute("ALTER TABLE stored_events DISABLE TRIGGER USER")
            await conn.execute(f"UPDATE stored_events SET recorded_at = recorded_at - interval '{ago}'")
            await conn.execute("ALTER TABLE stored_events ENABLE TRIGGER USER")
        again = await keyed(host)
        assert again.replayed is replayed
    assert again.json["id"] != first.json["id"]


async def test_a_key_wants_the_scope_of_its_route(host: Client) -> None:
    """HTTP-4"""
    assert (await keyed(host, headers=await api_key(host, Scope.READ))).status == 403
    assert (await keyed(host, headers=await api_key(host, Scope.RUN))).status == 200
