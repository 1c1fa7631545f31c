"""A cancel that was accepted, and an owner that was killed before it could read it: real processes."""

import asyncio
import signal
from pathlib import Path

import asyncpg

from domain import events as e
from domain.ids import DEFAULT_TENANT, run_stream, session_stream
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.supervision.processes import NO_SCAN, RECONCILING, on_trial

CONTINUING = "[run_continuation]\nenabled = true\n"
STALLS = scripted(
    '[providers.script.models.stalls.default]\ntext = "one two"\nstall_after = 1\n'
    "[providers.script.models.echo]\n",
    '[agents.stalls]\nprovider = "script"\nmodel = "stalls"\n'
    '[agents.echo]\nprovider = "script"\nmodel = "echo"\n',
    CONTINUING,
)


async def test_what_was_accepted_is_carried_out_although_the_owner_is_dead(
    host_of: OpenHost, database: str, pool: asyncpg.Pool, tmp_path: Path
) -> None:
    """CANCEL-1, CONT-4: a live run and one that waits for its turn end as cancelled, and neither goes on."""
    other = await host_of(RECONCILING + STALLS)
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
