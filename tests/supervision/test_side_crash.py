"""A host that is killed while a summary is written or an answer judged: a real process, and another host."""

import asyncio
import signal
from pathlib import Path

from app.main import Host
from domain import events as e
from domain.events.side import ContextCompacted, CriterionJudged, SideCallStarted
from domain.ids import RunId
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.supervision.crashing import successor
from tests.supervision.one_database import database as database
from tests.supervision.processes import RECONCILING, on_trial

LONG = "The tide took the pier, and the harbour master wrote it down. " * 20
CONTINUING = RECONCILING.replace('"1.5s"', '"3s"') + "[run_continuation]\nenabled = true\n"
AGENTS = """
[agents.reads]
provider = "script"
model = "says"
compaction = { summarizer = { provider = "reader", model = "sums" }, threshold = 200, keep_recent = 1 }
[agents.judged]
provider = "script"
model = "says"
loop = { criterion = "It is said.", judge = { provider = "reader", model = "judges" } }
"""


def settings(sums: str, judges: str) -> str:
    reader = f"[providers.reader.models.sums]\n{sums}\n[providers.reader.models.judges]\n{judges}\n"
    says = '[providers.script.models.says]\ndefault = { text = "Aye." }\n'
    return scripted(f'{says}[providers.reader]\ntype = "scripted"\n{reader}', AGENTS, CONTINUING)


SILENT = settings("default = { silent = true }", "default = { silent = true }")
ANSWERS = settings(
    'default = { text = "There was a tide." }', 'default = { text = \'{"met": true, "reason": "So."}\' }'
)


async def gone_on(host: Host, run_id: RunId) -> list[e.Recorded[e.Event]]:
    """The run that goes on in the other's place, to its end."""
    old = await asyncio.wait_for(follow(host, run_id, (e.RunContinued, e.RunContinuationBlocked)), 45)
    assert kinds(old)[-2:] == ["RunFailed", "RunContinued"]
    return await follow(host, await successor(host, run_id))


async def test_runs_whose_host_is_killed_in_a_side_call_go_on_elsewhere(
    host_of: OpenHost, database: str, tmp_path: Path
) -> None:
    """CHAIN-13, RECON-2, CONT-1: the call is made again, on record in the new run, and its answer counts."""
    other = await host_of(ANSWERS)
    await follow(other, await start(other, "reads", LONG, session_id="reads"))
    with on_trial(tmp_path, database, SILENT) as killed:
        async with (
            killed.run("reads", session_id="reads") as reads,
            killed.run("judged", session_id="judged") as judged,
        ):
            for run_id in (reads, judged):
                await follow(other, run_id, SideCallStarted)
            killed.service.process.send_signal(signal.SIGKILL)
            for run_id, outcome in ((reads, ContextCompacted), (judged, CriterionJudged)):
                seen = await gone_on(other, run_id)
                assert len(only(seen, outcome)) == 1
                assert kinds(seen)[-1] == "RunCompleted"
