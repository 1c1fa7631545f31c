"""How long a body may be."""

import asyncio
from collections.abc import AsyncIterator

from tests.http.conftest import Hosts
from tests.http.test_bad_input import RUN, TYPED, sent


async def pieces(count: int) -> AsyncIterator[bytes]:
    yield b'{"message": "'
    for _ in range(count):
        yield b"x" * 1000
        await asyncio.sleep(0)
    yield b'"}'


async def test_a_body_may_be_as_long_as_the_limit_and_no_longer(hosts: Hosts) -> None:
    """HTTP-1"""
    host = await hosts.open(server={"max_body_bytes": 2000})
    shell = len(b'{"message": ""}')
    assert (
        await host.request("POST", RUN, **sent(b'{"message": "%b"}' % (b"x" * (2000 - shell))))
    ).status == 200
    longer = await host.request("POST", RUN, **sent(b'{"message": "%b"}' % (b"x" * (2001 - shell))))
    assert (longer.status, longer.body["code"]) == (413, "body_too_large")
    chunked = await host.request("POST", RUN, data=pieces(3), headers=TYPED)
    assert (chunked.status, chunked.body["code"]) == (413, "body_too_large")
    assert (await host.request("POST", RUN, data=pieces(1), headers=TYPED)).status == 200


async def test_an_endless_body_is_not_read_to_its_end(hosts: Hosts) -> None:
    """HTTP-1"""
    host = await hosts.open(server={"max_body_bytes": 2000})
    reader, writer = await asyncio.open_connection(*host.address)
    head = f"POST {RUN} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + b"3e8\r\n%b\r\n" % (b"x" * 1000) * 3)
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 10)
    writer.close()


async def test_a_declared_length_over_the_limit_is_refused_before_a_byte_of_it(hosts: Hosts) -> None:
    """HTTP-1"""
    host = await hosts.open(server={"max_body_bytes": 2000})
    reader, writer = await asyncio.open_connection(*host.address)
    head = f"POST {RUN} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Content-Length: 1000000000\r\n\r\n")
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 10)
    writer.close()
