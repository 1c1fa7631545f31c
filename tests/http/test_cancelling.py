"""Asking a live run to stop."""

from tests.http.client import Client
from tests.http.conftest import Hosts


async def test_a_live_run_is_told_to_stop_and_says_when_it_has(hosts: Hosts) -> None:
    """CANCEL-1"""
    host = await hosts.open()
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        answer = await host.post(f"/tracon/api/runs/{stream.run_id}/cancel", {"reason": "changed my mind"})
        assert (answer.status, answer.body) == (202, {"run_id": stream.run_id})
        rest = await stream.rest()
    assert [frame.event for frame in rest][:1] == ["RunCancelRequested"]
    assert rest[-1].event == "RunCancelled"
    assert rest[-1].data["data"]["reason"] == "changed my mind"


async def test_no_reason_need_be_given(hosts: Hosts) -> None:
    """CANCEL-1"""
    host = await hosts.open()
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        assert (await host.post(f"/tracon/api/runs/{stream.run_id}/cancel")).status == 202
        assert (await stream.rest())[-1].event == "RunCancelled"


async def test_a_run_that_has_ended_cannot_be_cancelled(host: Client) -> None:
    """CANCEL-1"""
    run_id = (await host.run("echo")).body["id"]
    before = await host.events(run_id)
    answer = await host.post(f"/tracon/api/runs/{run_id}/cancel")
    assert (answer.status, answer.body["code"]) == (409, "run_already_ended")
    assert await host.events(run_id) == before


async def test_who_waits_for_a_run_that_is_cancelled_is_told_so(hosts: Hosts) -> None:
    """CANCEL-1, HTTP-1"""
    host = await hosts.open()
    async with hosts.in_background(host.run("gated")) as waiting:
        await hosts.gate.reached.wait()
        [actor] = host.host.roster
        await host.post(f"/tracon/api/runs/{actor.run_id}/cancel")
        answer = await waiting
    assert (answer.status, answer.body["code"]) == (409, "run_cancelled")
    assert answer.body["run"]["status"] == "Cancelled"
