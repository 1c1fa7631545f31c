"""Lists of jobs and schedules: one tenant's, filtered, answered from an index."""

from datetime import timedelta
from uuid import UUID

import asyncpg
import msgspec
import pytest

from domain.events import RunCancelled, ScheduleDefined, SchedulePaused
from domain.ids import RunId
from domain.queueing import BatchItem, QueueSpec, ScheduleFiring, Source
from domain.run import RunStatus
from projections.base import Fact
from projections.read.jobs import JobFilter, JobLease, JobPage, jobs_of_batch, lease_of, list_jobs
from projections.read.schedules import list_schedules, next_due
from tests.domain.facts import CREATED, STARTED
from tests.projections.read.conftest import Show
from tests.projections.read.plans import indexes_used
from tests.projections.story import NOON, in_one_log, minute, stream
from tests.projections.test_schedules import HOURLY

BATCH = UUID(int=99)


def job(
    number: int, *, lane: str = "default", source: Source | None = None, tenant: str = "acme"
) -> list[Fact]:
    created = msgspec.structs.replace(CREATED, tenant=tenant, queue=QueueSpec(lane=lane, source=source))
    return [
        msgspec.structs.replace(recorded, at=minute(10 * number))
        for recorded in stream(created, STARTED, run_id=UUID(int=number), tenant=tenant)
    ]


JOBS = (
    job(1, source=BatchItem(batch_id=BATCH, number=1)),
    job(2, lane="bulk", source=BatchItem(batch_id=BATCH, number=0)),
    job(3, source=ScheduleFiring(schedule="hourly", due=NOON)),
    job(4, tenant="zebra"),
)


def found(page: JobPage) -> list[int]:
    return [record.id.int for record in page.jobs]


async def test_the_newest_job_comes_first_and_other_tenants_have_their_own(
    pool: asyncpg.Pool, show: Show
) -> None:
    """HTTP-2"""
    await show(in_one_log(*JOBS))
    assert found(await list_jobs(pool, "acme")) == [3, 2, 1]
    assert found(await list_jobs(pool, "acme", skip=1, take=1)) == [2]
    assert (await list_jobs(pool, "acme", take=2)).more


@pytest.mark.parametrize(
    ("wanted", "matching"),
    [
        (JobFilter(lane="bulk"), [2]),
        (JobFilter(status=RunStatus.QUEUED), []),
        (JobFilter(status=RunStatus.RUNNING, lane="default"), [3, 1]),
        (JobFilter(batch_id=BATCH), [2, 1]),
        (JobFilter(schedule="hourly"), [3]),
        (JobFilter(agent="nobody"), []),
    ],
)
async def test_filters_leave_what_matches_all_of_them(
    pool: asyncpg.Pool, show: Show, wanted: JobFilter, matching: list[int]
) -> None:
    await show(in_one_log(*JOBS))
    assert found(await list_jobs(pool, "acme", wanted)) == matching


async def test_a_job_says_who_has_it(pool: asyncpg.Pool, show: Show) -> None:
    await show(in_one_log(job(1), job(2)))
    await pool.execute(
        "UPDATE job_queue SET owner = 'host-1', attempts = 2, leased_until = $1 WHERE run_id = $2",
        NOON,
        UUID(int=1),
    )
    lease = JobLease(host="host-1", attempts=2, until=NOON)
    assert [record.lease for record in (await list_jobs(pool, "acme")).jobs] == [None, lease]
    assert await lease_of(pool, RunId(UUID(int=1))) == lease


async def test_a_batch_has_its_items(pool: asyncpg.Pool, show: Show) -> None:
    await show(in_one_log(*JOBS))
    items = await jobs_of_batch(pool, BATCH)
    assert [run_id.int for run_id in items] == [2, 1]


async def test_schedules_are_listed_by_name_and_told_when_due(pool: asyncpg.Pool, show: Show) -> None:
    def defined(number: int, name: str, tenant: str = "acme", *more: SchedulePaused) -> list[Fact]:
        definition = msgspec.structs.replace(HOURLY, name=name)
        event = ScheduleDefined(definition=definition, next_due=NOON + timedelta(hours=number))
        return stream(event, *more, run_id=UUID(int=number), tenant=tenant)

    paused = defined(0, "d", "acme", SchedulePaused())
    await show(in_one_log(defined(2, "b"), defined(1, "c"), defined(3, "a", "zebra"), paused))
    page = await list_schedules(pool, "acme", take=2)
    assert ([record.definition.name for record in page.schedules], page.more) == (["b", "c"], True)
    due = await next_due(pool, 2)
    assert [(one.tenant, one.name) for one in due] == [("acme", "c"), ("acme", "b")]
    assert due[1].in_s - due[0].in_s == pytest.approx(3600, abs=5)


FILTERS = [
    (JobFilter(), "jobs_newest"),
    (JobFilter(status=RunStatus.FAILED), "jobs_by_status"),
    (JobFilter(lane="rare"), "jobs_by_lane"),
    (JobFilter(batch_id=BATCH), "jobs_by_batch"),
    (JobFilter(schedule="rare"), "jobs_by_schedule"),
]


async def test_every_list_is_answered_from_its_index(pool: asyncpg.Pool) -> None:
    await pool.execute(
        """INSERT INTO jobs (run_id, tenant_id, agent, lane, priority, max_attempts,
                             status, queued_at, schedule, batch_id, item)
           SELECT gen_random_uuid(), 'acme', 'support', CASE n % 500 WHEN 0 THEN 'rare' ELSE 'most' END, 0, 1,
                  CASE n % 500 WHEN 1 THEN 'Failed' ELSE 'Completed' END, now() - n * interval '1 s',
                  CASE n % 500 WHEN 2 THEN 'rare' END, CASE n % 500 WHEN 3 THEN $1::uuid END, n
             FROM generate_series(1, 20000) AS n""",
        BATCH,
    )
    await pool.execute("ANALYZE jobs")
    for wanted, index in FILTERS:
        status = None if wanted.status is None else wanted.status.value
        arguments = ("acme", status, wanted.lane, wanted.agent, wanted.batch_id, wanted.schedule, 0, 50)
        assert index in await indexes_used(pool, "list_jobs", *arguments), wanted


async def test_cancelled_jobs_have_no_lease(pool: asyncpg.Pool, show: Show) -> None:
    created = msgspec.structs.replace(CREATED, queue=QueueSpec())
    await show(stream(created, RunCancelled()))
    [record] = (await list_jobs(pool, "acme")).jobs
    assert (record.status, record.lease) == (RunStatus.CANCELLED, None)
