"""A cancel that was accepted is carried out by whoever finds that the run's owner is gone (CANCEL-1)."""

from collections.abc import AsyncIterator
from functools import partial
from uuid import uuid4

import asyncpg
import msgspec
import pytest

from app.db.pool import connect
from app.settings import RunReconciliationSettings
from app.store.event_log import EventLog
from domain import events as e
from domain.agent import Link
from domain.ids import RunId, session_stream
from tests.domain.facts import CREATED, OPENED, calling
from tests.supervision.orphanage import HOST, QUEUED, Judge, append, last_of, left_behind


@pytest.fixture
async def log(database: str, pool: asyncpg.Pool) -> AsyncIterator[EventLog]:
    async with EventLog(pool, partial(connect, database)) as opened:
        yield opened


async def test_word_that_nobody_read_ends_the_run_as_cancelled(log: EventLog, pool: asyncpg.Pool) -> None:
    asked, waiting, other = await left_behind(log, pool, (*OPENED, calling(1)), QUEUED, OPENED)
    await leave_word(pool, asked)
    await leave_word(pool, waiting)
    judge, told = Judge(pool, log), list[RunId]()
    judge.orphans.on_orphaned.append(lambda orphan: noted(told, orphan))
    await judge.scan()
    link = Link(provider="primary", model="small")
    assert await last_of(log, asked) == e.RunCancelled(reason="enough", model_call=link)
    assert await last_of(log, waiting) == e.RunCancelled(reason="enough")
    assert isinstance(await last_of(log, other), e.RunFailed)
    assert told == [other]
    assert await pool.fetchval("SELECT count(*) FROM run_heartbeats") == 0


async def test_a_cancel_that_was_on_record_already_needs_no_word(log: EventLog, pool: asyncpg.Pool) -> None:
    [run_id] = await left_behind(log, pool, (*OPENED, e.RunCancelRequested(reason="enough")))
    await Judge(pool, log).scan()
    assert await last_of(log, run_id) == e.RunCancelled(reason="enough")


async def test_a_roots_cancel_is_its_childrens(log: EventLog, pool: asyncpg.Pool) -> None:
    """CANCEL-3"""
    root = RunId(uuid4())
    created = msgspec.structs.replace(CREATED, root_run_id=root, parent_run_id=root, depth=1)
    first, second = await left_behind(log, pool, (created, OPENED[1]), (created, OPENED[1]))
    await leave_word(pool, root)
    await Judge(pool, log, RunReconciliationSettings(enabled=True, max_runs_per_scan=1)).scan()
    for child in (first, second):
        assert await last_of(log, child) == e.RunCancelled(reason="enough")


async def test_a_child_whose_root_was_cancelled_long_ago_is_cancelled_with_it(
    log: EventLog, pool: asyncpg.Pool
) -> None:
    """CANCEL-3: no word is left for a run that has ended."""
    root = RunId(uuid4())
    await append(log, root, *OPENED, e.RunCancelled(reason="enough"))
    created = msgspec.structs.replace(CREATED, root_run_id=root, parent_run_id=root, depth=1)
    [child] = await left_behind(log, pool, (created, OPENED[1]))
    await Judge(pool, log).scan()
    assert await last_of(log, child) == e.RunCancelled(reason="enough")


async def test_the_turn_that_was_cancelled_is_part_of_its_session(log: EventLog, pool: asyncpg.Pool) -> None:
    """CANCEL-3: the session goes on with what was said."""
    created = msgspec.structs.replace(CREATED, session_id="s")
    [run_id] = await left_behind(log, pool, (created, OPENED[1]))
    await leave_word(pool, run_id)
    await Judge(pool, log).scan()
    session = await log.read_stream(session_stream(created.tenant, "s"))
    assert [one.event for one in session] == [e.SessionTurnAdded(run_id=run_id, messages=created.input)]


async def leave_word(pool: asyncpg.Pool, run_id: RunId) -> None:
    await pool.execute("INSERT INTO cancel_requests VALUES ($1, $2, 'enough')", run_id, HOST)


async def noted(told: list[RunId], run_id: RunId) -> None:
    told.append(run_id)
