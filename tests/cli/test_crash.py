"""`kill -9` at each named place of a run's life: what a client has received is in the log, without a gap."""

import asyncio
import json
import signal
from pathlib import Path
from typing import get_args

import pytest

from app.faults import FaultPoint
from tests.cli.command import DEMO, Service, serving, tracon

# Late enough in the run that the client has seen something.
NTH = {
    "append.before": 4,
    "append.after": 4,
    "model.call.before": 2,
    "heartbeat.before": 40,
    "heartbeat.after": 40,
    "lease.renew.before": 4,
    "lease.renew.after": 4,
}
# Heartbeats and leases go by the clock, so their run must last, and they must come often.
BY_THE_CLOCK = ("heartbeat", "lease")
OFTEN = {
    "TRACON_RUN_RECONCILIATION__HEARTBEAT_INTERVAL": "100ms",
    "TRACON_SINGLETON_EXECUTION__LEASE_DURATION": "3s",
}


# A decision is not a place of a run's life, and the agent's run has no nodes: others pass by there,
# tests/http/test_approvals_under_kills.py and tests/chaos/test_workflow_kills.py.
POINTS = [point for point in get_args(FaultPoint) if not point.startswith(("approval", "node"))]


@pytest.mark.parametrize("point", POINTS)
async def test_nothing_that_was_received_is_lost_by_a_kill_at(
    point: FaultPoint, database: str, tmp_path: Path
) -> None:
    """EVENT-2, EVENT-7: a numbered frame is delivered only after its event is committed."""
    agent = "slow" if point.startswith(BY_THE_CLOCK) else "support"
    fault = f"{point}:{NTH.get(point, 1)}"
    host = (*DEMO, "--dsn", database)
    with serving(*host, log=tmp_path / "log", TRACON_FAULT=fault, **OFTEN) as service:
        seen = await asyncio.to_thread(frames_until_the_end, service, agent)
        assert await asyncio.to_thread(service.process.wait, 10) == -signal.SIGKILL
    assert seen, "the client saw nothing: the fault came too early to prove anything"
    run_id = str(seen[0]["run_id"])
    with serving(*host, log=tmp_path / "log after the restart"):
        done = await asyncio.to_thread(tracon, "replay", run_id, "--json", "--dsn", database)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert [{**event, "run_id": run_id} for event in events[: len(seen)]] == seen


def frames_until_the_end(service: Service, agent: str) -> list[dict[str, object]]:
    text = service.received(f"/api/agents/{agent}/run", b'{"message": "Where is order 1042?"}')
    whole = text.rpartition("\n\n")[0]
    return [json.loads(line[6:]) for line in whole.splitlines() if line.startswith("data: ")]
