"""Runs that were left behind by hosts that are gone, and those who find them."""

from collections.abc import Sequence

import asyncpg
import msgspec

from app.identity import new_run_id
from app.metrics import Metrics
from app.settings import CancellationSettings, RunReconciliationSettings
from app.store.event_log import Change, EventLog
from app.supervision.cancels import Cancels
from app.supervision.orphans import Orphans
from app.supervision.presence import Presence
from app.supervision.reconciler import Reconciler
from app.supervision.singleton import Unlimited
from domain.events import Event, Recorded
from domain.ids import DEFAULT_TENANT, RunId, Version, run_stream
from domain.queueing import QueueSpec
from tests.domain.facts import CREATED

EVER = Unlimited()
SETTINGS = RunReconciliationSettings(enabled=True)
HOST = "host-1"
"""The host that begins the runs of `OPENED`."""
QUEUED = (CREATED,)
"""It waits in the host that accepted it."""
JOB = (msgspec.structs.replace(CREATED, queue=QueueSpec()),)
"""It waits for a worker."""


class Judge:
    """A reconciler with all that it needs, on a host that has written its heartbeats for `steady_s`."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        log: EventLog,
        settings: RunReconciliationSettings = SETTINGS,
        *,
        host: str = "judge",
        steady_s: float = SETTINGS.heartbeat_interval,
    ) -> None:
        self.metrics = Metrics()
        cancels = Cancels(pool, log, host, CancellationSettings(), 300.0, self.metrics)
        self.orphans = Orphans(log, cancels, self.metrics)
        self.presence = Presence(settings.orphan_threshold, clock=lambda: steady_s)
        self.presence.beaten(self.presence.call_roll(), (), asked_at=0.0, answered_at=0.0)
        self.reconciler = Reconciler(pool, self.orphans, host, self.presence, settings)

    async def scan(self) -> None:
        await self.reconciler.scan(EVER)

    def count(self, series: str) -> float:
        return self.metrics.registry.get_sample_value(series) or 0.0


async def left_behind(
    log: EventLog, pool: asyncpg.Pool, *streams: Sequence[Event], silent: str = "6 minutes", host: str = HOST
) -> list[RunId]:
    """Runs with these events whose host was last heard of so long ago."""
    runs = [new_run_id() for _ in streams]
    for run_id, events in zip(runs, streams, strict=True):
        await append(log, run_id, *events)
    await vouch(pool, runs, silent=silent, host=host)
    return runs


async def append(log: EventLog, run_id: RunId, *events: Event, after: int = 0) -> None:
    change = Change(
        stream_id=run_stream(run_id), expected=Version(after), tenant=DEFAULT_TENANT, events=tuple(events)
    )
    await log.append(change, patience_s=10.0)


async def vouch(pool: asyncpg.Pool, runs: Sequence[RunId], *, silent: str = "0 s", host: str = HOST) -> None:
    await pool.execute(
        "INSERT INTO run_heartbeats (run_id, host_id, seen_at)"
        f" SELECT unnest($1::uuid[]), $2, clock_timestamp() - interval '{silent}'",
        runs,
        host,
    )


async def events_of(log: EventLog, run_id: RunId) -> list[Recorded[Event]]:
    return await log.read_stream(run_stream(run_id))


async def last_of(log: EventLog, run_id: RunId) -> Event:
    return (await events_of(log, run_id))[-1].event
