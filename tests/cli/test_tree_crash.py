"""`kill -9` in the middle of a tree, and the host that is started after it goes on with it (CONT, RECON)."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from app.faults import FaultPoint
from tests.cli.command import DEMO, Service, serving

QUICK = {
    "TRACON_RUN_RECONCILIATION__HEARTBEAT_INTERVAL": "200ms",
    "TRACON_RUN_RECONCILIATION__ORPHAN_THRESHOLD": "1s",
    "TRACON_RUN_RECONCILIATION__SCAN_INTERVAL": "200ms",
    "TRACON_RUN_CONTINUATION__ENABLED": "true",
    # The host that is killed owns the periodic work until its lease is over.
    "TRACON_SINGLETON_EXECUTION__ENABLED": "false",
}
ANSWER = "My colleague says: Your order: a rain jacket, on its way, due on Tuesday"
PLACES: dict[str, tuple[FaultPoint, int, list[str]]] = {
    "the child's tool is at work": ("tool.body.before", 2, ["concierge", "support", "concierge", "support"]),
    # Its answer is on its own record, and is not asked for again.
    "the child has ended": ("run.end.after", 1, ["concierge", "support", "concierge"]),
}


@pytest.mark.parametrize("place", PLACES)
async def test_a_tree_that_is_killed_is_gone_on_with_by_the_next_host(
    place: str, database: str, tmp_path: Path
) -> None:
    """CONT-1, CONT-2, RECON-2: the whole tree is closed, and its root has its answer after all."""
    point, nth, agents = PLACES[place]
    host = (*DEMO, "--dsn", database)
    with serving(*host, log=tmp_path / "log", TRACON_FAULT=f"{point}:{nth}", **QUICK) as service:
        body = json.dumps({"message": "Where is my order?", "session_id": "s"}).encode()
        await asyncio.to_thread(service.received, "/api/agents/concierge/run", body)
        assert await asyncio.to_thread(service.process.wait, 30) == -signal.SIGKILL
    with serving(*host, log=tmp_path / "log after the restart", **QUICK) as service:
        runs = await finished(service)
        root = runs[-1]
        last = next(run for run in runs if run["depth"] == 0)
        assert root["error_type"] == "orphaned"
        assert root["continued_by_run_id"] == last["id"]
        events = await asked(service, f"/api/runs/{last['id']}/events")
    assert [run["agent"] for run in reversed(runs)] == agents
    assert events["events"][-1]["data"]["answer"] == ANSWER
    assert all(run["status"] in ("Completed", "Failed") for run in runs), "nothing of either tree is open"


async def asked(service: Service, path: str) -> Any:
    return json.loads(await asyncio.to_thread(service.request, path))


async def finished(service: Service) -> list[dict[str, Any]]:
    """The runs of the session, newest first, once a root has its answer."""
    async with asyncio.timeout(30):
        while True:
            runs: list[dict[str, Any]] = (await asked(service, "/api/runs?session_id=s"))["runs"]
            if any(run["status"] == "Completed" and run["depth"] == 0 for run in runs):
                return runs
            await asyncio.sleep(0.05)
