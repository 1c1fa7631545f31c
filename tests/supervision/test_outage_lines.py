"""What a host says of a store that is away: a line when it begins and one when it is over, for each duty."""

from collections import Counter
from pathlib import Path

import pytest

from tests.hosts import OpenHost, scripted
from tests.http.client import eventually
from tests.store.proxy import proxied

SETTINGS = scripted(
    "[providers.script.models.m]\n",
    more="""
[health]
background_interval = "50ms"
[run_reconciliation]
enabled = true
heartbeat_interval = "50ms"
scan_interval = "50ms"
[singleton_execution]
enabled = true
lease_duration = "3s"
[async_run]
poll_interval = "50ms"
[schedules]
poll_interval = "50ms"
[idempotency]
sweep_interval = "50ms"
""",
)
DUTIES = {
    *("heartbeat", "cancel requests", "jobs", "schedules", "wake-ups", "lease periodic-work"),
    *("idempotency", "health"),
    *("projection runs", "projection jobs", "projection statistics", "projection idempotency"),
}


def told_by(caplog: pytest.LogCaptureFixture, message: str) -> Counter[str]:
    """How often each duty said this."""
    return Counter(
        str(record.__dict__["duty"]) for record in caplog.records if record.getMessage() == message
    )


async def test_each_duty_tells_of_an_outage_once_and_of_its_end_once(
    host_of: OpenHost, database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """EVENT-8: however often it tries meanwhile, and without a traceback: nothing of ours is at fault."""
    async with proxied(tmp_path, database) as proxy:
        host = await host_of(SETTINGS, dsn=proxy.dsn)
        metrics = host.services.metrics.registry
        await eventually(
            lambda: (
                metrics.get_sample_value("tracon_duties_total", {"duty": "reconciliation", "outcome": "done"})
                is not None
            )
        )
        failures = metrics.get_sample_value("tracon_heartbeat_failures_total") or 0.0
        await proxy.refuse()
        await eventually(lambda: told_by(caplog, "outage.began").keys() >= DUTIES, within_s=30)
        await eventually(
            lambda: (metrics.get_sample_value("tracon_heartbeat_failures_total") or 0.0) > failures + 20,
            within_s=30,
        )
        await eventually(lambda: (metrics.get_sample_value("tracon_heartbeat_age_seconds") or 0.0) > 0.5)
        await proxy.accept()
        await eventually(lambda: told_by(caplog, "outage.ended").keys() >= DUTIES, within_s=30)
        await eventually(lambda: (metrics.get_sample_value("tracon_heartbeat_age_seconds") or 9.0) < 0.5)
    # Who came through in the very moment in which the connections broke met it twice.
    for message in ("outage.began", "outage.ended"):
        told = told_by(caplog, message)
        assert {duty for duty in DUTIES if told[duty] not in (1, 2)} == set()
    ours = [record for record in caplog.records if record.name.startswith(("app", "projections"))]
    assert [record for record in ours if record.exc_info] == []
