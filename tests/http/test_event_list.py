"""A run's events as JSON, however many there are."""

import asyncio
import json
import socket
from uuid import UUID

from app.http.display import encode, view_of
from domain.ids import RunId, run_stream
from tests.http.client import Client
from tests.http.conftest import Hosts
from tests.queries import STREAM, Queries
from tests.queries import queries as queries
from tests.store.proxy import Proxy

EACH_CHUNK = {"recording": {"delta_window": 0}}
"""Is an event of its own: 120 of them, of 60 kB each."""


async def giant(host: Client) -> str:
    async with host.start("huge") as stream:
        await stream.rest()
    return stream.run_id


async def test_a_giant_run_is_read_and_sent_page_by_page(queries: Queries, hosts: Hosts) -> None:
    """HTTP-5: the answer is the same JSON as that of a small one, and never in memory as a whole."""
    host = await hosts.open(**EACH_CHUNK)
    run_id = await giant(host)
    with queries.made() as made:
        answer = await host.get(f"/tracon/api/runs/{run_id}/events")
    whole = await host.host.services.log.read_stream(run_stream(RunId(UUID(run_id))))
    assert answer.body == json.loads(
        encode({"run_id": run_id, "events": [view_of(each, 65536) for each in whole]})
    )
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Run-Id"] == run_id
    assert made.count(f"{STREAM} {run_id}") > 5


async def test_a_part_of_a_giant_run_is_a_part(hosts: Hosts) -> None:
    """HTTP-2: `after` and `take`, as everywhere."""
    host = await hosts.open(**EACH_CHUNK)
    run_id = await giant(host)
    events = await host.events(run_id)
    assert await host.events(run_id, "?after=3&take=200") == events[3:203]
    assert await host.events(run_id, "?after=3&take=90") == events[3:93]
    assert await host.events(run_id, "?after=100") == events[100:]
    seen, after = [], 0
    while page := await host.events(run_id, f"?after={after}&take=50"):
        seen += page
        after = page[-1]["sequence"]
    assert seen == events


async def test_an_answer_whose_rest_cannot_be_read_is_cut_and_not_closed(hosts: Hosts, proxy: Proxy) -> None:
    """EVENT-8: what looks whole is whole."""
    host = await hosts.open(dsn=proxy.dsn, **EACH_CHUNK)
    run_id = await giant(host)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, host.address)
        ask = f"GET /tracon/api/runs/{run_id}/events HTTP/1.1\r\nHost: localhost\r\nAccept: application/json"
        await loop.sock_sendall(slow, ask.encode() + b"\r\n\r\n")
        received = await asyncio.wait_for(loop.sock_recv(slow, 1000), 20)
        await proxy.refuse()
        try:
            while piece := await asyncio.wait_for(loop.sock_recv(slow, 1 << 20), 20):
                received += piece
        except ConnectionResetError:
            pass
    await proxy.accept()
    assert b" 200 OK" in received
    assert b"chunked" in received
    assert not received.endswith(b"0\r\n\r\n")
