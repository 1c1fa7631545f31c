"""SIGTERM: nothing new, time for what is live, and a good end for whoever watches."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from aiohttp import ClientSession

from domain import events as e
from tests.hosts import OpenHost, follow, scripted, start
from tests.supervision.leaving import leave_under
from tests.supervision.processes import RECONCILING, on_trial

AGENT = '[agents.{0}]\nprovider = "script"\nmodel = "{0}"\n'
MODELS = """
[providers.script.models.speaking.default]
text = "one two three four five six seven eight nine ten"
delay = "200ms"
[providers.script.models.endless.default]
text = "one two three"
stall_after = 2
"""
SERVICE = scripted(MODELS, AGENT.format("speaking") + AGENT.format("endless"), RECONCILING)


def draining(timeout: str) -> str:
    return f'[drain]\nenabled = true\ntimeout = "{timeout}"\n' + SERVICE


@pytest.mark.timeout(120)
async def test_under_load_no_request_fails_that_ends_in_time(database: str, tmp_path: Path) -> None:
    """DRAIN-1: new ones are refused, the host leaves as soon as nothing is left, with status 0."""
    with on_trial(tmp_path, database, draining("1h")) as trial:
        outcome = await leave_under(trial, clients=200)
    assert outcome.ends == {"RunCompleted": 200}
    assert outcome.refusals == [(503, "draining", "1")]
    assert outcome.exit_status == 0


async def test_what_does_not_end_in_time_is_cut_and_goes_on_elsewhere(
    host_of: OpenHost, database: str, tmp_path: Path
) -> None:
    """DRAIN-1: a typed frame names the last event. Another host goes on from there, and closes the run."""
    other = await host_of(RECONCILING.replace("1.5s", "10m") + SERVICE.replace(RECONCILING, ""))
    with on_trial(tmp_path, database, draining("300ms")) as trial:
        async with trial.watch("endless") as (run_id, frames):
            seen = [await anext(frames), await anext(frames), await anext(frames), await anext(frames)]
            assert seen[-1].event == "TextDelta"
            trial.service.process.send_signal(signal.SIGTERM)
            rest = [frame async for frame in frames]
        assert await asyncio.to_thread(trial.service.process.wait, 30) == 0
    last = [frame.id for frame in seen + rest if frame.id is not None][-1]
    assert (rest[-1].id, rest[-1].event) == (None, "error")
    assert (rest[-1].data["code"], rest[-1].data["last_event_id"]) == ("host_stopping", last)
    ended = await asyncio.wait_for(follow(other, run_id, e.RunFailed), 30)
    assert [one.sequence for one in ended] == list(range(1, last + 2))


async def test_who_waits_for_the_whole_answer_is_told_where_it_will_be(database: str, tmp_path: Path) -> None:
    """DRAIN-1"""
    with on_trial(tmp_path, database, draining("300ms")) as trial:
        async with ClientSession(base_url=trial.service.url) as session:
            path, as_json = "/tracon/api/agents/endless/run", {"Accept": "application/json"}
            waiting = asyncio.create_task(session.post(path, json={"message": "Go."}, headers=as_json))
            await trial.live(1)
            trial.service.process.send_signal(signal.SIGTERM)
            answer = await waiting
            problem = json.loads(await answer.read())
        assert (answer.status, problem["code"]) == (503, "host_stopping")
        assert answer.headers["X-Run-Id"]
        assert await asyncio.to_thread(trial.service.process.wait, 30) == 0


async def test_watchers_of_other_hosts_runs_hold_up_nothing(
    host_of: OpenHost, database: str, tmp_path: Path
) -> None:
    """DRAIN-1: with a minute to go, it leaves at once, since nothing of its own is live."""
    other = await host_of(SERVICE)
    run_id = await start(other, "endless", streaming=True)
    with on_trial(tmp_path, database, draining("60s")) as trial:
        async with (
            ClientSession(base_url=trial.service.url) as session,
            session.get(
                f"/tracon/api/runs/{run_id}/events", headers={"Accept": "text/event-stream"}
            ) as response,
        ):
            await response.content.readuntil(b"event: TextDelta")
            trial.service.process.send_signal(signal.SIGTERM)
            assert b'"code":"host_stopping"' in await response.read()
        assert await asyncio.to_thread(trial.service.process.wait, 20) == 0


async def test_a_second_signal_ends_the_patience(database: str, tmp_path: Path) -> None:
    """DRAIN-1: whoever insists is obeyed."""
    with on_trial(tmp_path, database, draining("60s")) as trial:
        async with trial.watch("endless") as (_, frames):
            await anext(frames)
            trial.service.process.send_signal(signal.SIGTERM)
            await trial.told("drain.waits")
            trial.service.process.send_signal(signal.SIGTERM)
            assert [frame async for frame in frames][-1].data["code"] == "host_stopping"
        assert await asyncio.to_thread(trial.service.process.wait, 20) == 0
