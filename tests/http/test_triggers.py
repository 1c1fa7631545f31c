"""Signed requests of other systems: each delivery has one run, and who did not sign gets nothing (JOB-2)."""

import time
from typing import Any

import pytest

from app.jobs.signature import sign
from app.jobs.triggers import TriggerMisconfigured, triggers_of
from app.settings import TriggerSettings
from domain.queueing import TriggerDelivery
from projections.read.jobs import list_jobs as read_jobs
from tests.http.client import Answer, Client
from tests.http.conftest import Hosts

SECRET = "a secret between two systems"
ORDERS = {"agent": "echo", "secret_env": "ORDERS_SECRET", "message": "An order came: {{ body }}"}
PATH = "/tracon/api/triggers/orders"
BODY = b'{"order": 7}'


@pytest.fixture
async def host(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("ORDERS_SECRET", SECRET)
    return await hosts.open(auth={"required": True}, triggers={"orders": ORDERS})


def headers(
    body: bytes = BODY, *, delivery: str = "msg_1", age_s: int = 0, secret: str = SECRET, **more: str
) -> dict[str, str]:
    timestamp = int(time.time()) - age_s
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret.encode(), delivery, timestamp, body),
        **more,
    }


async def deliver(host: Client, body: bytes = BODY, path: str = PATH, **signed: Any) -> Answer:
    return await host.request("POST", path, data=body, headers=headers(body, **signed))


async def test_a_signed_delivery_has_its_run(host: Client) -> None:
    """JOB-2: no key of ours is needed; the signature is the credential."""
    answer = await deliver(host)
    run_id = answer.body["id"]
    assert answer.status == 202
    assert answer.headers["Location"] == f"/tracon/api/runs/{run_id}"
    assert answer.body["tenant"] == "default"
    await host.views_show("jobs")
    [job] = (await read_jobs(host.host.services.pool, "default")).jobs
    assert job.source == TriggerDelivery(trigger="orders", delivery="msg_1")
    events = await host.host.services.runs.load("default", run_id)
    assert events[0].event.input[0].content == 'An order came: {"order": 7}'  # type: ignore[union-attr]


async def test_a_delivery_that_is_repeated_gets_the_same_run(hosts: Hosts, host: Client) -> None:
    """JOB-2: idempotent by delivery id, also when it is signed anew, on any host."""
    other = await hosts.open(auth={"required": True}, triggers={"orders": ORDERS})
    first, again = await deliver(host), await deliver(other, age_s=5)
    assert (again.status, again.body) == (202, first.body)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (await deliver(host, delivery="msg_2")).body["id"] != first.body["id"]


async def test_what_is_not_signed_is_refused_without_a_detail(host: Client) -> None:
    """JOB-2: 401, the same for whatever is wrong."""
    for change in (
        {"webhook-signature": "v1,bm90IGl0"},
        {"webhook-signature": ""},
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
        {"webhook-id": "x" * 300},
        {"webhook-timestamp": "1"},
        {"webhook-timestamp": "now"},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "9" * 400},
    ):
        refused = await host.request("POST", PATH, data=BODY, headers=headers() | change)
        assert (refused.status, refused.body["code"]) == (401, "unauthenticated"), change
        assert refused.body["detail"] == "The request is not signed as it must be."
    assert await host.host.services.pool.fetchval("SELECT count(*) FROM stored_events") == 0


async def test_another_body_another_secret_another_trigger_are_refused_alike(host: Client) -> None:
    """JOB-2"""
    tampered = await host.request("POST", PATH, data=b'{"order": 8}', headers=headers())
    guessed = await deliver(host, secret="another secret altogether")
    elsewhere = await deliver(host, path="/tracon/api/triggers/nowhere")
    details = {(one.status, one.body["code"], one.body["detail"]) for one in (tampered, guessed, elsewhere)}
    assert len(details) == 1
    assert tampered.status == 401
    assert host.count("tracon_trigger_deliveries_total", trigger="orders", outcome="refused") == 2
    assert host.count("tracon_trigger_deliveries_total", trigger="none", outcome="refused") == 1


async def test_what_was_signed_long_ago_is_refused(host: Client) -> None:
    """JOB-2: the replay window, by the database's clock."""
    for age_s, status in ((290, 202), (-290, 202), (310, 401), (-310, 401)):
        assert (await deliver(host, age_s=age_s)).status == status, age_s


async def test_a_body_that_is_no_message_is_refused(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_SECRET", SECRET)
    host = await hosts.open(triggers={"orders": {**ORDERS, "message": "{{ body }}"}})
    for body in (b"", b" \n", b"\xff\xfe"):
        refused = await deliver(host, body)
        assert (refused.status, refused.body["code"]) == (400, "empty_message")


async def test_a_host_that_drains_still_takes_it(host: Client) -> None:
    """DRAIN-1: a request that only writes a job is still accepted."""
    host.host.drain.begin()
    assert (await deliver(host)).status == 202


def test_a_secret_that_is_not_there_stops_the_start() -> None:
    settings = {"orders": TriggerSettings(agent="echo", secret_env="NOT_SET")}
    with pytest.raises(TriggerMisconfigured, match=r"'orders'.*NOT_SET is empty"):
        triggers_of(settings, {})
    missing = {"orders": TriggerSettings(agent="echo", secret_file="/nowhere/secret")}
    with pytest.raises(TriggerMisconfigured, match="cannot be read: No such file"):
        triggers_of(missing, {})
