"""The oracle sees a view that is not what the log makes, and a job that nobody will take any more."""

from collections.abc import AsyncIterator
from functools import partial

import asyncpg
import pytest

from app.db.pool import connect
from app.identity import new_run_id
from app.store.event_log import EventLog
from domain import events as e
from ops.chaos.oracle.views import jobs, views
from ops.chaos.received import Violation
from tests.projections.writing import WHOLE_RUN, write
from tests.supervision.orphanage import JOB


@pytest.fixture
async def log(database: str, pool: asyncpg.Pool) -> AsyncIterator[EventLog]:
    async with EventLog(pool, partial(connect, database)) as opened:
        await write(opened, *WHOLE_RUN, tenant="default")
        await write(opened, *JOB, e.RunCancelled(), run_id=new_run_id(), tenant="default")
        yield opened


async def audited(pool: asyncpg.Pool, log: EventLog) -> list[Violation]:
    return [violation async for violation in views(pool, log)] + [found async for found in jobs(pool)]


async def test_what_the_hosts_have_folded_and_what_they_have_not_is_as_the_log_has_it(
    pool: asyncpg.Pool, log: EventLog
) -> None:
    """EVENT-6"""
    assert await audited(pool, log) == []
    await write(log, *WHOLE_RUN, run_id=new_run_id(), tenant="default")
    assert await audited(pool, log) == []


@pytest.mark.parametrize(
    "doctored",
    [
        "UPDATE runs SET events = events + 1",
        "UPDATE statistics_agents SET created = created + 1",
        "DELETE FROM tool_calls",
        "UPDATE jobs SET priority = 7",
    ],
)
async def test_a_row_that_no_rebuild_makes(pool: asyncpg.Pool, log: EventLog, doctored: str) -> None:
    """EVENT-6"""
    assert await audited(pool, log) == []
    assert not (await pool.execute(doctored)).endswith(" 0")
    assert {violation.rule for violation in await audited(pool, log)} == {"views"}


async def test_a_job_that_is_left_in_the_work_list_or_never_ended(pool: asyncpg.Pool, log: EventLog) -> None:
    """JOB-1"""
    run_id = new_run_id()
    await write(log, *JOB, run_id=run_id, tenant="default")
    found = await audited(pool, log)
    assert [(violation.rule, violation.run_id) for violation in found] == [("jobs", run_id)] * 2
