"""Watching runs: live or finished, from any place, on any host."""

import asyncio
import socket

from tests.http.client import STREAM, Client, eventually
from tests.http.conftest import Hosts


async def test_a_run_streams_its_events_from_the_first_to_its_end(host: Client) -> None:
    """HTTP-3, EVENT-1"""
    async with host.start("story") as stream:
        frames = await stream.rest()
    assert [frame.id for frame in frames] == list(range(1, len(frames) + 1))
    assert [frame.event for frame in frames if frame.event != "TextDelta"] == [
        "RunCreated",
        "RunStarted",
        "ModelCallStarted",
        "ModelReplied",
        "RunCompleted",
    ]
    assert {frame.data["run_id"] for frame in frames} == {stream.run_id}
    assert [frame.data["sequence"] for frame in frames] == [frame.id for frame in frames]
    assert [frame.data["type"] for frame in frames] == [frame.event for frame in frames]
    deltas = [frame.data["data"]["text"] for frame in frames if frame.event == "TextDelta"]
    assert "".join(deltas) == frames[-1].data["data"]["answer"] == "Once upon a time."


async def test_a_stream_is_fit_for_proxies_and_names_its_run(host: Client) -> None:
    """HTTP-3"""
    async with host.start("story") as stream:
        headers = stream.response.headers
        assert stream.response.status == 200
        assert headers["Content-Type"] == "text/event-stream"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Accel-Buffering"] == "no"
        assert headers["Location"] == f"/tracon/api/runs/{stream.run_id}"
        await stream.rest()
    assert (await host.get(headers["Location"])).body["id"] == stream.run_id


async def test_live_and_replayed_are_the_same_events_with_the_same_numbers(host: Client) -> None:
    """EVENT-1, HTTP-3"""
    async with host.start("story") as stream:
        live = await stream.rest()
    async with host.watch(stream.run_id) as replay:
        assert await replay.rest() == live
    listed = await host.events(stream.run_id)
    assert [{**event, "run_id": stream.run_id} for event in listed] == [frame.data for frame in live]


async def test_a_client_resumes_after_any_event_without_gap_or_repeat(host: Client) -> None:
    """HTTP-3"""
    async with host.start("story") as stream:
        whole = await stream.rest()
    for place in range(len(whole)):
        async with host.watch(stream.run_id, after=place) as resumed:
            assert await resumed.rest() == whole[place:]
        assert await host.events(stream.run_id, f"?after={place}") == [
            {name: value for name, value in frame.data.items() if name != "run_id"} for frame in whole[place:]
        ]


async def test_a_client_resumes_a_live_run(hosts: Hosts) -> None:
    """HTTP-3"""
    host = await hosts.open()
    async with host.start("gated") as stream:
        seen = await stream.until("ToolInvoking")
        async with host.watch(stream.run_id, after=seen[1].id) as resumed:
            again = await resumed.until("ToolInvoking")
            hosts.gate.let_go.set()
            assert again + await resumed.rest() == seen[2:] + await stream.rest()


async def test_any_host_shows_a_run_of_any_other(hosts: Hosts) -> None:
    """HTTP-3"""
    owner, other = await hosts.open(), await hosts.open()
    async with owner.start("gated") as stream:
        seen = await stream.until("ToolInvoking")
        async with other.watch(stream.run_id) as elsewhere:
            assert await elsewhere.until("ToolInvoking") == seen
            hosts.gate.let_go.set()
            rest = await stream.rest()
            assert await elsewhere.rest() == rest
    async with other.watch(stream.run_id) as elsewhere:
        assert await elsewhere.rest() == seen + rest


async def test_nothing_is_left_after_the_last_event(host: Client) -> None:
    """HTTP-3: an event source that is told 204 does not come back."""
    run_id = (await host.run("story")).headers["X-Run-Id"]
    last = len(await host.events(run_id))
    async with host.watch(run_id, after=last) as stream:
        assert stream.response.status == 204
    assert await host.events(run_id, f"?after={last}") == []


async def test_a_place_that_the_run_has_not_is_refused(host: Client) -> None:
    """HTTP-3"""
    path = f"/tracon/api/runs/{(await host.run('story')).headers['X-Run-Id']}/events"
    for place in ("999", "-1", "x", "1.5", "99999999999999999999"):
        asked = await host.request("GET", f"{path}?after={place}", headers=STREAM)
        resumed = await host.request("GET", path, headers={**STREAM, "Last-Event-ID": place})
        for answer in (asked, resumed):
            assert (answer.status, answer.body["code"]) == (400, "bad_query"), place


async def test_the_header_of_a_reconnecting_client_stands_above_the_query(host: Client) -> None:
    """HTTP-3: an event source reconnects to the same address, `after` and all."""
    run_id = (await host.run("story")).headers["X-Run-Id"]
    events = await host.events(run_id)
    answer = await host.get(f"/tracon/api/runs/{run_id}/events?after=1", **{"Last-Event-ID": "3"})
    assert answer.body["events"] == events[3:]


async def test_a_part_of_a_long_stream_can_be_asked_for(host: Client) -> None:
    """HTTP-2"""
    run_id = (await host.run("story")).headers["X-Run-Id"]
    events = await host.events(run_id)
    assert await host.events(run_id, "?after=1&take=2") == events[1:3]
    assert await host.events(run_id, "?take=0") == events[:1]
    assert await host.events(run_id, "?take=100000") == events


async def test_an_idle_stream_is_kept_open(hosts: Hosts) -> None:
    """HTTP-3"""
    host = await hosts.open(server={"sse_keepalive": 0.05})
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        for _ in range(3):
            assert await stream.response.content.readuntil(b"\n\n") == b": keep-alive\n\n"


async def test_a_run_goes_on_when_its_watcher_hangs_up(hosts: Hosts) -> None:
    """HTTP-3"""
    host = await hosts.open()
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        stream.response.close()
    async with host.watch(stream.run_id) as again:
        await again.until("ToolInvoking")
        await eventually(lambda: host.count("tracon_sse_streams") == 1)
        hosts.gate.let_go.set()
        assert (await again.rest())[-1].event == "RunCompleted"


async def test_a_watcher_that_does_not_read_holds_up_neither_the_run_nor_the_others(host: Client) -> None:
    """HTTP-3"""
    async with host.start("huge") as stream:
        stalled = socket.socket()
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with stalled:
            stalled.connect(host.address)
            stalled.sendall(
                b"GET /tracon/api/runs/%b/events HTTP/1.1\r\nHost: localhost\r\n\r\n" % stream.run_id.encode()
            )
            frames = await asyncio.wait_for(stream.rest(), 30)
            assert frames[-1].event == "RunCompleted"
            await eventually(lambda: host.count("tracon_sse_streams") == 1)
        await eventually(lambda: host.count("tracon_sse_streams") == 0)


async def test_long_text_is_cut_where_it_is_shown_and_whole_where_it_is_needed(hosts: Hosts) -> None:
    """EVENT-7"""
    host = await hosts.open(recording={"display_limit": 100})
    long = "x" * 1000
    answer = await host.run("echo", long)
    run_id = answer.headers["X-Run-Id"]
    shown = "x" * 100 + " [cut for display: 100 of 1000 bytes]"
    events = await host.events(run_id)
    assert events[0]["data"]["input"] == [{"role": "user", "content": shown}]
    async with host.watch(run_id) as stream:
        assert [frame.data["data"] for frame in await stream.rest()] == [event["data"] for event in events]
    whole = await host.get(f"/tracon/api/runs/{run_id}/input")
    assert whole.body["messages"] == [{"role": "user", "content": long}]
    assert answer.body["answer"] == long


async def test_text_that_is_only_shown_has_no_number_and_is_not_replayed(hosts: Hosts) -> None:
    """EVENT-7"""
    host = await hosts.open(recording={"deltas": "live"})
    async with host.start("gated") as stream:
        seen = await stream.until("ToolInvoking")
        hosts.gate.let_go.set()
        seen += await stream.rest()
    shown = [frame for frame in seen if frame.id is None]
    assert "".join(frame.data["data"]["text"] for frame in shown) == "It is through."
    assert {frame.event for frame in shown} == {"TextDelta"}
    async with host.watch(stream.run_id) as replay:
        assert await replay.rest() == [frame for frame in seen if frame.id is not None]
