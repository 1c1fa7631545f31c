"""Asking a live run to stop."""

from uuid import UUID

from domain.commands import FailRun
from domain.failure import ErrorClass, RunError
from domain.ids import RunId
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


async def test_who_waits_for_the_end_gets_the_receipt(hosts: Hosts) -> None:
    """CANCEL-3: which tool was stopped; the same as in the run's stream."""
    host = await hosts.open()
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        answer = await host.post(f"/tracon/api/runs/{stream.run_id}/cancel?wait=true", {"reason": "enough"})
        end = (await stream.rest())[-1]
    assert (answer.status, answer.body["status"], answer.body["sequence"]) == (200, "Cancelled", end.id)
    [stopped] = answer.body["interrupted"]
    assert stopped["tool"] == "gate"
    assert {name: answer.body[name] for name in end.data["data"]} == end.data["data"]


async def test_the_receipt_names_the_model_call_that_was_given_up(hosts: Hosts) -> None:
    """CANCEL-3: on whichever host."""
    host, other = await hosts.open(), await hosts.open()
    async with host.start("silent") as stream:
        await stream.until("ModelCallStarted")
        answer = await other.post(f"/tracon/api/runs/{stream.run_id}/cancel?wait=true")
    assert (answer.status, answer.body["model_call"]) == (200, {"provider": "scripted", "model": "silent"})


async def test_the_receipt_names_a_tool_that_did_not_stop(hosts: Hosts) -> None:
    """CANCEL-3: it may have had its effect."""
    host = await hosts.open(cancellation={"grace": 0.05})
    hosts.gate.is_deaf = True
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        await hosts.gate.reached.wait()
        answer = await host.post(f"/tracon/api/runs/{stream.run_id}/cancel?wait=true")
    assert [call["tool"] for call in answer.body["unknown"]] == ["gate"]
    assert answer.body["interrupted"] == []


async def test_who_has_waited_long_enough_is_told_that_it_was_accepted(hosts: Hosts) -> None:
    """CANCEL-1: `cancellation.wait_timeout`. The run ends when it does."""
    host = await hosts.open(cancellation={"grace": 0.2, "wait_timeout": 0})
    hosts.gate.is_deaf = True
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        await hosts.gate.reached.wait()
        answer = await host.post(f"/tracon/api/runs/{stream.run_id}/cancel?wait=true")
        assert (answer.status, answer.body) == (202, {"run_id": stream.run_id})
        assert (await stream.rest())[-1].event == "RunCancelled"


async def test_a_host_that_stops_keeps_nobody_waiting(hosts: Hosts) -> None:
    """DRAIN-1: what it accepted is accepted."""
    host = await hosts.open(cancellation={"grace": 5})
    hosts.gate.is_deaf = True
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        await hosts.gate.reached.wait()
        path = f"/tracon/api/runs/{stream.run_id}/cancel?wait=true"
        async with hosts.in_background(host.post(path)) as waiting:
            await stream.until("RunCancelRequested")
            host.host.in_flight.stop()
            answer = await waiting
        hosts.gate.let_go.set()
    assert answer.status == 202


async def test_a_host_that_does_not_know_that_its_run_was_closed_takes_no_cancel_of_it(
    hosts: Hosts,
) -> None:
    """CANCEL-1, CANCEL-2: what somebody has gone on from cannot be stopped any more, and that is told."""
    host, other = await hosts.open(), await hosts.open()
    async with host.start("gated") as stream:
        await stream.until("ToolInvoking")
        await hosts.gate.reached.wait()
        run_id = RunId(UUID(stream.run_id))
        closed = RunError(message="it was silent", type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
        await other.host.services.runs.execute(run_id, FailRun(error=closed))
        answer = await host.post(f"/tracon/api/runs/{run_id}/cancel")
        assert (answer.status, answer.body["code"]) == (409, "run_already_ended")
        hosts.gate.let_go.set()
    types = [event["type"] for event in await other.events(str(run_id))]
    assert types[-1] == "RunFailed"
