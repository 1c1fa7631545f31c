"""What comes in and is no request, or never becomes one, is told so, and holds up nobody."""

import asyncio
import gzip
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.http.client import Client, eventually
from tests.http.conftest import Hosts

RUN = "/tracon/api/agents/echo/run"
LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


def head(*headers: str, path: str = RUN, method: str = "POST") -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def whole(body: bytes, *headers: str, path: str = RUN) -> bytes:
    return head("Accept: application/json", f"Content-Length: {len(body)}", *headers, path=path) + body


@dataclass
class Told:
    """One answer, as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: Any = field(repr=False)


class Wire:
    """A connection on which anything may be sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, raw: bytes) -> None:
        self.writer.write(raw)

    async def told(self) -> Told:
        start, *lines = (await self._read(self._reader.readuntil(b"\r\n\r\n"))).decode().strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        body = await self._read(self._reader.readexactly(int(headers["Content-Length"])))
        return Told(int(start.split()[1]), headers, json.loads(body))

    async def is_closed(self) -> bool:
        """Whether nothing more comes. Waits until that is certain."""
        with suppress(ConnectionResetError):
            return await self._read(self._reader.read()) == b""
        return True

    async def _read(self, read: Any) -> bytes:
        data: bytes = await asyncio.wait_for(read, 20)
        return data


@asynccontextmanager
async def wire(host: Client) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection(*host.address)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


MALFORMED = {
    "words": b"hello\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 50,
    "version": b"GET / HTTP/9.9\r\n\r\n",
    "method": b"G@T /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no host": b"GET /health/live HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "header": head("no header"),
    "control in header": head("X: a\0b"),
    "target": b"GET http://localhost:99999/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "target not UTF-8": b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "chunk size": head("Transfer-Encoding: chunked") + b"zz\r\nabc\r\n0\r\n\r\n",
    "chunk end": head("Transfer-Encoding: chunked") + b"3\r\nabcd\r\n0\r\n\r\n",
    "two lengths": head("Content-Length: 5", "Content-Length: 6") + b"hello",
    "negative length": head("Content-Length: -5") + b"hello",
    "huge length": head(f"Content-Length: {'9' * 40}") + b"hello",
    "no length": head("Content-Length: ") + b"hello",
    "length and chunks": head("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "transfer coding": head("Transfer-Encoding: gzip") + b"hello",
}
TOO_MUCH = {
    "target": (head(path="/" + "a" * 9000), 414, "target_too_long"),
    "header": (head("X: " + "a" * 17_000), 431, "headers_too_large"),
    "header name": (head("a" * 17_000 + ": x"), 431, "headers_too_large"),
    "endless header": (head()[:-2] + b"X: " + b"a" * 17_000, 431, "headers_too_large"),
    "headers": (head(*(f"X-{n}: a" for n in range(200))), 431, "headers_too_large"),
    "content coding": (whole(b"hello", "Content-Encoding: br"), 415, "unsupported_media_type"),
    "expectation": (whole(b"{}", "Expect: the unexpected"), 417, "expectation_failed"),
}
CASES = [
    *((name, raw, 400, "malformed_request") for name, raw in MALFORMED.items()),
    *((f"too much: {name}", *case) for name, case in TOO_MUCH.items()),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("raw", "status", "code"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_what_is_no_request_is_told_so_and_is_nobodys_defect(
    same_host: Client, caplog: pytest.LogCaptureFixture, raw: bytes, status: int, code: str
) -> None:
    """HTTP-1: in the form of every other problem, for clients of either API; the log has no error of it."""
    with caplog.at_level(logging.INFO):
        async with wire(same_host) as sent:
            sent.send(raw)
            told = await sent.told()
            assert await sent.is_closed()
    assert (told.status, told.body["code"], told.body["status"]) == (status, code, status)
    assert told.headers["Content-Type"] == "application/problem+json"
    assert told.headers["Server"] == "tracon"
    assert told.body["detail"].endswith(".")
    assert told.body["error"]["message"] == told.body["detail"]
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_no_request_is_counted(same_host: Client) -> None:
    async def counted() -> float:
        return same_host.count("tracon_http_requests_total", method="OTHER", route="unmatched", status="400")

    before = await counted()
    async with wire(same_host) as sent:
        sent.send(MALFORMED["words"])
        await sent.told()
    assert await counted() == before + 1


@pytest.mark.asyncio(loop_scope="module")
async def test_a_body_that_breaks_while_it_is_read_is_answered_once(
    same_host: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """HTTP-1"""
    log = same_host.host.services.log
    begun = await log.end_position()
    for broken in (b"zz\r\n", b"3\r\nabcd\r\n"):
        async with wire(same_host) as sent:
            sent.send(head("Transfer-Encoding: chunked") + b"b\r\n" + b'{"message":\r\n')
            await sent.writer.drain()
            sent.send(broken)
            assert (await sent.told()).status == 400
            assert await sent.is_closed()
    async with wire(same_host) as sent:
        sent.send(whole(b"not deflated", "Content-Encoding: deflate"))
        assert (await sent.told()).body["code"] == "bad_body"
        assert await sent.is_closed()
    assert await log.end_position() == begun
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.asyncio(loop_scope="module")
async def test_pipelined_requests_are_answered_one_after_the_other(same_host: Client) -> None:
    """HTTP-1"""
    async with wire(same_host) as sent:
        sent.send(b"".join(whole(b'{"message": "%d"}' % n) for n in range(40)))
        answers = [(await sent.told()).body["answer"] for _ in range(40)]
        assert answers == [str(n) for n in range(40)]
        sent.send(LIVE)
        assert (await sent.told()).body == {"status": "ok"}
        sent.send(b"hello\r\n\r\n")
        assert (await sent.told()).status == 400
        assert await sent.is_closed()


WRONG_TEXTS = {
    "not UTF-8": b'{"message": "\xff\xfe"}',
    "half a pair": b'{"message": "\\ud800"}',
    "twice": b'{"message": "a", "message": "b"}',
    "twice, deeper": b'{"message": "a", "parameters": {"x": {"y": 1, "y": 2}}}',
    "twice, escaped": b'{"message": "a", "mess\\u0061ge": "b"}',
    "no such number": b'{"message": "a", "parameters": {"x": 1e999}}',
    "not a number": b'{"message": "a", "parameters": {"x": NaN}}',
    "more than a queue has": b'{"message": "a", "queue": {"priority": %b}}' % (b"9" * 400),
    "two values": b'{"message": "a"} {"message": "b"}',
    "byte order mark": b'\xef\xbb\xbf{"message": "a"}',
    "UTF-16": '{"message": "a"}'.encode("utf-16"),
    "nested": b'{"message": "a", "parameters": {"x": %b}}' % (b"[" * 70 + b"]" * 70),
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("body", WRONG_TEXTS.values(), ids=WRONG_TEXTS)
@pytest.mark.parametrize("headers", [(), ("Prefer: respond-async",), ("Idempotency-Key: k",)], ids=str)
async def test_a_body_that_two_readers_could_read_in_two_ways_is_refused(
    same_host: Client, body: bytes, headers: tuple[str, ...]
) -> None:
    """HTTP-1, and IDEM: whoever asks for a run, however, and no key is held."""
    begun = await same_host.host.services.log.end_position()
    async with wire(same_host) as sent:
        sent.send(whole(body, *headers))
        told = await sent.told()
        assert (told.status, told.body["code"]) == (400, "bad_body")
        sent.send(LIVE)
        assert (await sent.told()).status == 200
    assert await same_host.host.services.log.end_position() == begun


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("number", ["9" * 400, "1e308", "-" + "9" * 20, "0.1" + "0" * 400])
async def test_a_huge_number_is_no_crash(same_host: Client, number: str) -> None:
    """HTTP-1: where anything may stand, the answer is what the agent makes of it."""
    async with wire(same_host) as sent:
        sent.send(whole(b'{"message": "a", "parameters": {"x": %b}}' % number.encode()))
        told = await sent.told()
        assert told.status == 400
        assert told.body["code"] in {"bad_parameter", "bad_body"}
        chat = f'{{"model": "echo", "messages": [{{"role": "user", "content": "a"}}], "seed": {number}}}'
        sent.send(whole(chat.encode(), path="/tracon/v1/chat/completions"))
        assert (await sent.told()).status == 400


async def test_a_body_that_does_not_come_is_waited_for_so_long(hosts: Hosts) -> None:
    """HTTP-1: nothing is begun, and no key is held (IDEM)."""
    host = await hosts.open(server={"body_timeout": 0.2})
    body = b'{"message": "hello"}'
    for extra in ((), ("Idempotency-Key: k",), ("Prefer: respond-async",)):
        async with wire(host) as sent:
            sent.send(whole(body, *extra)[:-5])
            told = await sent.told()
            assert (told.status, told.body["code"]) == (408, "body_timeout")
            assert "server.body_timeout" in told.body["detail"]
            assert await sent.is_closed()
    assert await host.host.services.log.end_position() == 0
    async with wire(host) as sent:
        sent.send(whole(body, "Idempotency-Key: k"))
        assert (await sent.told()).status == 200


async def test_a_body_in_drops_is_not_waited_for_any_longer(hosts: Hosts) -> None:
    """HTTP-1: in the other API's form too."""
    host = await hosts.open(server={"body_timeout": 0.3})
    async with wire(host) as sent:
        sent.send(head("Content-Length: 100000", path="/tracon/v1/chat/completions"))

        async def drip() -> None:
            while not sent.writer.is_closing():
                sent.send(b" ")
                await asyncio.sleep(0.01)

        async with hosts.in_background(drip()):
            told = await sent.told()
    assert (told.status, told.headers["Content-Type"]) == (408, "application/json")
    assert told.body["error"]["code"] == "body_timeout"


@pytest.mark.parametrize(
    "asked",
    [
        whole(b'{"message": "hello"}', path="/tracon/api/agents/huge/run"),
        whole(b'{"model": "huge", "input": "x"}', path="/tracon/v1/responses"),
        whole(b'{"model": "huge", "input": "x", "stream": true}', path="/tracon/v1/responses"),
    ],
    ids=["run", "response", "stream"],
)
async def test_an_answer_that_nobody_takes_is_not_held_for_ever(hosts: Hosts, asked: bytes) -> None:
    """HTTP-1: the run is on record all the same."""
    host = await hosts.open(server={"write_timeout": 0.3})
    with socket.socket() as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(stuck, host.address)
        await loop.sock_sendall(stuck, asked)
        await eventually(lambda: host.count("tracon_runs_ended_total", status="Completed") == 1)
        await eventually(lambda: host.count("tracon_http_connections") == 0)
        taken = 0
        with suppress(ConnectionResetError):
            while piece := await asyncio.wait_for(loop.sock_recv(stuck, 1 << 20), 20):
                taken += len(piece)
    assert taken < 7_000_000


async def test_a_body_that_unpacks_to_more_than_a_body_may_have_is_refused(hosts: Hosts) -> None:
    """HTTP-1: it is not unpacked to its end."""
    host = await hosts.open(server={"max_body_bytes": 30_000})
    body = gzip.compress(b'{"message": "%b"}' % (b" " * 20_000_000))
    assert len(body) < 30_000
    async with wire(host) as sent:
        sent.send(whole(body, "Content-Encoding: gzip"))
        told = await sent.told()
        assert (told.status, told.body["code"]) == (413, "body_too_large")
    async with wire(host) as sent:
        sent.send(whole(gzip.compress(b'{"message": "hello"}'), "Content-Encoding: gzip"))
        assert (await sent.told()).body["answer"] == "hello"


async def test_a_connection_that_asks_nothing_is_closed(hosts: Hosts) -> None:
    """HTTP-1: one that has asked is kept."""
    host = await hosts.open(server={"head_timeout": 0.3})
    async with wire(host) as busy, wire(host) as silent, wire(host) as slow:
        busy.send(LIVE)
        assert (await busy.told()).status == 200
        slow.send(LIVE[:-4])
        for idle in (silent, slow):
            told = await idle.told()
            assert (told.status, told.body["code"]) == (408, "head_timeout")
            assert await idle.is_closed()
        busy.send(LIVE)
        assert (await busy.told()).status == 200
