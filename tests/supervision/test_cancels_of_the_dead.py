"""A cancel that was accepted, and an owner that was killed before it could read it: real processes."""

import asyncio
import signal
from pathlib import Path

import asyncpg

from domain import events as e
from domain.ids import DEFAULT_TENANT, run_stream, session_stream
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.supervision.processes import NO_SCAN, RECONCILING, THRESHOLD_S, on_trial
from tracon import tool

UNHURRIED = RECONCILING.replace(f"{THRESHOLD_S}s", "4s")
"""Who is asked takes the owner for alive for long enough, however busy the machine is."""
CONTINUING = "[run_continuation]\nenabled = true\n"
STALLS = scripted(
    '[providers.script.models.stalls.default]\ntext = "one two"\nstall_after = 1\n'
    "[providers.script.models.echo]\n",
    '[agents.stalls]\nprovider = "script"\nmodel = "stalls"\n'
    '[agents.echo]\nprovider = "script"\nmodel = "echo"\n',
    CONTINUING,
)
WAITS = scripted(
    '[[providers.script.models.waits.default]]\ntool_call = { name = "wait_for_go" }\n',
    '[agents.waits]\nprovider = "script"\nmodel = "waits"\ntools = ["wait_for_go"]\n',
    CONTINUING,
)


@tool(effect="write")
def wait_for_go() -> str:
    """The host that looks for orphans knows the tool, and never calls it."""
    raise AssertionError


async def test_what_was_accepted_is_carried_out_although_the_owner_is_dead(
    host_of: OpenHost, database: str, pool: asyncpg.Pool, tmp_path: Path
) -> None:
    """CANCEL-1, CONT-4: a live run and one that waits for its turn end as cancelled, and neither goes on."""
    other = await host_of(UNHURRIED + STALLS)
    with on_trial(tmp_path, database, NO_SCAN + STALLS) as killed:
        async with killed.run("stalls", session_id="s") as live:
            await follow(other, live, e.TextDelta)
            async with killed.run("stalls", session_id="s") as waiting:
                killed.service.process.send_signal(signal.SIGSTOP)
                for run_id in (live, waiting):
                    await other.services.runs.cancel(DEFAULT_TENANT, run_id, "not needed")
                killed.service.process.send_signal(signal.SIGKILL)
                for run_id in (live, waiting):
                    recorded = await asyncio.wait_for(follow(other, run_id), 30)
                    assert [end.reason for end in only(recorded, e.RunCancelled)] == ["not needed"]
    after = await start(other, "echo", session_id="s")
    assert kinds(await asyncio.wait_for(follow(other, after), 30))[-1] == "RunCompleted"
    for run_id in (live, waiting):
        assert kinds(await other.services.log.read_stream(run_stream(run_id)))[-1] == "RunCancelled"
    turns = await other.services.log.read_stream(session_stream(DEFAULT_TENANT, "s"))
    assert [turn.run_id for turn in only(turns, e.SessionTurnAdded)] == [live, after]


async def test_an_owner_that_dies_in_carrying_it_out_leaves_the_rest_to_another(
    host_of: OpenHost, database: str, tmp_path: Path
) -> None:
    """CANCEL-1, CANCEL-3: its tool did not stop, and what became of that nobody knows."""
    other = await host_of(UNHURRIED + WAITS, tools=(wait_for_go,))
    with on_trial(tmp_path, database, NO_SCAN + WAITS) as killed:
        async with killed.run("waits", session_id="s") as run_id:
            await killed.marked("waiting")
            path = f"/api/runs/{run_id}/cancel"
            await asyncio.to_thread(killed.service.request, path, b'{"reason": "not needed"}')
            killed.service.process.send_signal(signal.SIGKILL)
            recorded = await asyncio.wait_for(follow(other, run_id), 30)
    [cancelled] = only(recorded, e.RunCancelled)
    assert cancelled.reason == "not needed"
    assert [call.tool for call in cancelled.unknown] == ["wait_for_go"]
