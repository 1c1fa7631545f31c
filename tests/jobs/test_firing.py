"""Schedules on whole hosts: each due time has one run, whoever is there to fire it."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.db.pool import database_time
from app.jobs.schedules import Schedules
from app.main import Host
from app.store.event_log import Change
from domain.events import (
    Event,
    Recorded,
    RunCreated,
    RunFailed,
    ScheduleDefined,
    ScheduleFired,
    ScheduleSkipped,
)
from domain.failure import ErrorClass
from domain.ids import DEFAULT_TENANT, RunId, Version, run_stream, schedule_stream
from domain.messages import UserMessage
from domain.queueing import MissedFirings, QueueSpec, ScheduleDefinition, ScheduleFiring
from domain.schedule import Fire
from tests.hosts import OpenHost, follow, kinds, only
from tests.jobs.working import settings, shown, within

QUICK = '[schedules]\npoll_interval = "20ms"'


def nightly(missed: MissedFirings = MissedFirings.FIRE_ONCE, cron: str = "0 3 * * *") -> ScheduleDefinition:
    return ScheduleDefinition(
        name="nightly",
        cron=cron,
        agent="echo",
        input=(UserMessage(content="good night"),),
        missed=missed,
        queue=QueueSpec(priority=3),
    )


async def defined(host: Host, definition: ScheduleDefinition, next_due: datetime) -> None:
    """As if it had been defined before, and were due then."""
    change = Change(
        stream_id=schedule_stream(DEFAULT_TENANT, definition.name),
        expected=Version(0),
        tenant=DEFAULT_TENANT,
        events=(ScheduleDefined(definition=definition, next_due=next_due),),
    )
    await host.services.log.append(change)


async def history(host: Host, name: str = "nightly") -> list[Recorded[Event]]:
    return await host.services.log.read_stream(schedule_stream(DEFAULT_TENANT, name))


async def until(host: Host, kind: type[Event], count: int = 1) -> list[Recorded[Event]]:
    """The schedule's events once there are so many of a kind."""
    async with within():
        while len(only(recorded := await history(host), kind)) < count:
            await asyncio.sleep(0.005)
    return recorded


def runs_of(events: list[ScheduleFired]) -> list[RunId]:
    return [event.run_id for event in events]


async def test_a_due_time_is_fired_once_though_several_hosts_are_there(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """JOB-2"""
    hosts = [await host_of(settings(more=QUICK)) for _ in range(3)]
    due = (await database_time(pool)).replace(microsecond=0)
    await defined(hosts[0], nightly(), due)
    await until(hosts[0], ScheduleFired)
    [fired] = only(await history(hosts[0]), ScheduleFired)
    assert fired.due == due
    recorded = await follow(hosts[1], fired.run_id)
    assert kinds(recorded)[-1] == "RunCompleted"
    [created] = only(recorded, RunCreated)
    assert created.input == nightly().input
    assert created.queue == QueueSpec(priority=3, source=ScheduleFiring(schedule="nightly", due=due))
    await shown(hosts[1], "runs")
    assert await pool.fetchval("SELECT count(*) FROM runs") == 1


async def test_a_due_time_without_quota_has_a_run_that_says_so(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """BUDGET-6, JOB-2: nobody is there to be refused, so the run is kept, and failed."""
    quota = '[quotas.q]\nmetric = "runs"\nperiod = "day"\nlimit = 0\n'
    host = await host_of(settings(more=quota + QUICK))
    await defined(host, nightly(), await database_time(pool))
    [fired] = only(await until(host, ScheduleFired), ScheduleFired)
    recorded = await follow(host, fired.run_id)
    [failed] = only(recorded, RunFailed)
    assert kinds(recorded) == ["RunCreated", "RunFailed"]
    assert (failed.error_type, failed.error_class) == ("tenant_quota_exceeded", ErrorClass.QUOTA_EXCEEDED)


async def test_of_hosts_that_decide_at_the_same_moment_one_fires(
    host_of: OpenHost, pool: asyncpg.Pool, database: str
) -> None:
    """JOB-2: appends are held back until all of them wait for the same place in the schedule's stream."""
    hosts = [await host_of(settings(), worker=False) for _ in range(3)]
    await defined(hosts[0], nightly(), await database_time(pool))
    conn = await asyncpg.connect(database)
    try:
        async with conn.transaction():
            await conn.execute("LOCK TABLE stored_events IN EXCLUSIVE MODE")
            settling = [asyncio.create_task(settle(host)) for host in hosts]
            async with within():
                while await conn.fetchval(WAITING) < len(hosts):
                    await asyncio.sleep(0.005)
    finally:
        await conn.close()
    outcomes = await asyncio.gather(*settling)
    assert sorted(isinstance(outcome, Fire) for outcome in outcomes) == [False, False, True]
    assert kinds(await history(hosts[0])) == ["ScheduleDefined", "ScheduleFired"]
    await shown(hosts[0], "runs")
    assert await pool.fetchval("SELECT count(*) FROM runs") == 1


WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'stored_events'::regclass"


async def settle(host: Host) -> object:
    return await host.services.schedules.settle(DEFAULT_TENANT, "nightly")


async def test_each_due_time_that_passed_within_the_grace_is_fired(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    host = await host_of(settings(more='[schedules]\ngrace = "1h"'), worker=False)
    now = await database_time(pool)
    first = now.replace(second=0, microsecond=0) - timedelta(minutes=2)
    await defined(host, nightly(cron="* * * * *"), first)
    for _ in range(3):
        assert isinstance(await settle(host), Fire)
    fired = only(await history(host), ScheduleFired)
    assert [event.due for event in fired] == [first + timedelta(minutes=number) for number in range(3)]
    assert len(set(runs_of(fired))) == 3


async def test_due_times_at_which_no_host_was_there_are_fired_once_for_all(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """JOB-2"""
    host = await host_of(settings(more=QUICK))
    now = await database_time(pool)
    await defined(host, nightly(cron="0 * * * *"), now.replace(minute=0, second=0, microsecond=0) - 5 * HOUR)
    recorded = await until(host, ScheduleFired)
    [fired] = only(recorded, ScheduleFired)
    assert fired.missed_since == now.replace(minute=0, second=0, microsecond=0) - 5 * HOUR
    assert now - HOUR < fired.due <= await database_time(pool)
    assert fired.next_due == fired.due + HOUR


HOUR = timedelta(hours=1)


async def test_due_times_at_which_no_host_was_there_can_be_skipped_on_record(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """JOB-2"""
    host = await host_of(settings(more=QUICK))
    first = (await database_time(pool)).replace(minute=0, second=0, microsecond=0) - 5 * HOUR
    await defined(host, nightly(MissedFirings.SKIP, "0 0 1 1 *"), first)
    recorded = await until(host, ScheduleSkipped)
    [skipped] = only(recorded, ScheduleSkipped)
    assert (skipped.due, skipped.until) == (first, first)
    assert skipped.next_due
    assert skipped.next_due > await database_time(pool)
    assert not only(recorded, ScheduleFired)


async def test_a_schedule_that_cannot_be_fired_keeps_no_other_from_its_time(
    host_of: OpenHost, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settle = Schedules.settle

    async def stumbling(self: Schedules, tenant: str, name: str) -> object:
        if name == "broken":
            raise ZeroDivisionError("a defect")
        return await settle(self, tenant, name)

    monkeypatch.setattr(Schedules, "settle", stumbling)
    host = await host_of(settings(more=QUICK))
    now = await database_time(pool)
    broken = ScheduleDefinition(name="broken", cron="* * * * *", agent="echo", input=nightly().input)
    await defined(host, broken, now - timedelta(seconds=30))
    await defined(host, nightly(), now)
    assert kinds(await until(host, ScheduleFired)) == ["ScheduleDefined", "ScheduleFired"]
    assert [record.message for record in caplog.records].count("schedule.crashed") == 1


async def test_a_schedule_is_defined_from_now_on_by_the_databases_clock(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    host = await host_of(settings(), worker=False)
    before = await database_time(pool)
    record = await host.services.schedules.define(DEFAULT_TENANT, nightly(cron="* * * * *"), replace=False)
    assert record.next_due is not None
    assert before < record.next_due <= before + timedelta(seconds=61)
    assert record.next_due.astimezone(UTC).second == 0


async def test_a_run_out_of_turn_is_in_the_schedules_stream_and_in_its_own(host_of: OpenHost) -> None:
    host = await host_of(settings())
    schedules = host.services.schedules
    record = await schedules.define(DEFAULT_TENANT, nightly(), replace=False)
    run_id = await schedules.trigger(DEFAULT_TENANT, "nightly")
    assert kinds(await history(host)) == ["ScheduleDefined", "ScheduleTriggered"]
    [created] = only(await host.services.log.read_stream(run_stream(run_id)), RunCreated)
    assert created.queue
    assert created.queue.source == ScheduleFiring(schedule="nightly")
    assert (await schedules.get(DEFAULT_TENANT, "nightly")).next_due == record.next_due
    assert kinds(await follow(host, run_id))[-1] == "RunCompleted"
