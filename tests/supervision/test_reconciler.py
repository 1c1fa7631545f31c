"""Which runs are closed because nobody answers for them, which are not, and by whom."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from uuid import uuid4

import asyncpg
import pytest

from app.db.pool import connect
from app.settings import RunReconciliationSettings
from app.store.event_log import EventLog
from app.supervision.drain import Draining
from app.supervision.orphans import Orphan
from domain import events as e
from domain.failure import ErrorClass
from domain.ids import RunId
from projections.views import Views
from tests.domain.facts import OPENED, calling
from tests.projections.writing import insert
from tests.supervision.orphanage import (
    HOST,
    JOB,
    QUEUED,
    SETTINGS,
    Judge,
    append,
    events_of,
    last_of,
    left_behind,
    vouch,
)

ORPHANED = e.RunFailed(
    error=f"its host {HOST} was not heard of for 300 s (run_reconciliation.orphan_threshold)",
    error_type="orphaned",
    error_class=ErrorClass.INFRASTRUCTURE,
)


@pytest.fixture
async def log(database: str, pool: asyncpg.Pool) -> AsyncIterator[EventLog]:
    async with EventLog(pool, partial(connect, database)) as opened:
        yield opened


async def rows(pool: asyncpg.Pool) -> int:
    count: int = await pool.fetchval("SELECT count(*) FROM run_heartbeats")
    return count


async def test_a_running_run_that_was_silent_past_the_threshold_is_closed(
    log: EventLog, pool: asyncpg.Pool
) -> None:
    """RECON-2"""
    judge = Judge(pool, log)
    [run_id] = await left_behind(log, pool, (*OPENED, calling(1)))
    await judge.scan()
    assert await last_of(log, run_id) == ORPHANED
    assert await rows(pool) == 0
    assert judge.count("tracon_runs_orphaned_total") == 1


async def test_a_run_that_was_silent_for_less_is_left_alone(log: EventLog, pool: asyncpg.Pool) -> None:
    """RECON-2"""
    [run_id] = await left_behind(log, pool, OPENED, silent="4 minutes")
    await Judge(pool, log).scan()
    assert len(await events_of(log, run_id)) == len(OPENED)
    assert await rows(pool) == 1


async def test_a_queued_run_is_closed_only_if_it_ever_wrote_a_heartbeat(
    log: EventLog, pool: asyncpg.Pool
) -> None:
    """RECON-2: one waited inside of a host that died; the other belongs to a worker, however old it is."""
    [waited] = await left_behind(log, pool, JOB)
    queued = RunId(uuid4())
    await append(log, queued, *JOB)
    await shown(pool, log)
    await pool.execute("UPDATE runs SET created_at = created_at - interval '1 year'")
    await Judge(pool, log).scan()
    assert isinstance(await last_of(log, waited), e.RunFailed)
    assert len(await events_of(log, queued)) == len(JOB)


class TestInNoQueue:
    """RECON-2: a run waited for its session inside of a host, and the host died before its next beat.

    No worker will ever take it, and the runs of its session wait behind it.
    """

    @pytest.fixture
    async def run_id(self, log: EventLog, pool: asyncpg.Pool) -> RunId:
        return await waiting(log, pool, QUEUED)

    async def test_a_run_that_nobody_answers_for_is_closed(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId
    ) -> None:
        await Judge(pool, log).scan()
        end = await last_of(log, run_id)
        assert isinstance(end, e.RunFailed)
        assert end.error.startswith("the host that accepted it was not heard of for 300 s")
        assert await rows(pool) == 0

    async def test_a_run_that_was_accepted_lately_is_left_alone(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId
    ) -> None:
        await pool.execute("UPDATE runs SET created_at = clock_timestamp() - interval '4 minutes'")
        await Judge(pool, log).scan()
        assert len(await events_of(log, run_id)) == len(QUEUED)

    @pytest.mark.parametrize(("silent", "closed"), [("0 s", False), ("6 minutes", True)])
    async def test_it_may_be_with_any_host_that_writes_no_heartbeats(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId, silent: str, closed: bool
    ) -> None:
        await here(pool, vouches=False, silent=silent)
        await Judge(pool, log).scan()
        assert isinstance(await last_of(log, run_id), e.RunFailed) is closed

    async def test_a_job_is_left_alone_although_the_view_of_jobs_is_behind(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId
    ) -> None:
        job = await waiting(log, pool, JOB)
        await pool.execute("DELETE FROM jobs")
        await Judge(pool, log, RunReconciliationSettings(enabled=True, max_runs_per_scan=1)).scan()
        assert len(await events_of(log, job)) == len(JOB)
        assert isinstance(await last_of(log, run_id), e.RunFailed)


class TestWithoutAHeartbeat:
    """RECON-2: the host died before its first one, or knows nothing of the run."""

    @pytest.fixture
    async def run_id(self, log: EventLog, pool: asyncpg.Pool) -> RunId:
        run_id = RunId(uuid4())
        await append(log, run_id, *OPENED)
        await shown(pool, log)
        await pool.execute("UPDATE runs SET started_at = started_at - interval '6 minutes'")
        return run_id

    async def test_a_run_of_a_host_that_is_unknown_is_closed(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId
    ) -> None:
        await Judge(pool, log).scan()
        assert await last_of(log, run_id) == ORPHANED
        assert await rows(pool) == 0

    @pytest.mark.parametrize(
        ("vouches", "silent", "closed"),
        [(True, "0 s", True), (False, "0 s", False), (False, "6 minutes", True)],
        ids=["it would vouch for it", "it vouches for none", "it is gone"],
    )
    async def test_a_host_that_writes_no_heartbeats_answers_by_being_there(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId, vouches: bool, silent: str, closed: bool
    ) -> None:
        await here(pool, vouches=vouches, silent=silent)
        await Judge(pool, log).scan()
        assert isinstance(await last_of(log, run_id), e.RunFailed) is closed

    async def test_a_host_does_not_judge_a_run_that_is_at_work_on_it(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId
    ) -> None:
        """RECON-2: it was held up between the run's beginning and its next beat, and so it alone knows."""
        judge = Judge(pool, log)
        judge.presence.enter(run_id)
        await judge.scan()
        assert len(await events_of(log, run_id)) == len(OPENED)
        judge.presence.leave(run_id)
        await judge.scan()
        assert await last_of(log, run_id) == ORPHANED

    async def test_a_run_that_began_lately_is_left_alone(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId
    ) -> None:
        await pool.execute("UPDATE runs SET started_at = clock_timestamp() - interval '4 minutes'")
        await Judge(pool, log).scan()
        assert len(await events_of(log, run_id)) == len(OPENED)

    async def test_a_run_that_has_ended_is_not_closed_because_a_view_is_behind(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId
    ) -> None:
        await append(log, run_id, e.RunCancelled(), after=len(OPENED))
        await Judge(pool, log).scan()
        assert await last_of(log, run_id) == e.RunCancelled()
        assert await rows(pool) == 0

    async def test_those_of_a_live_host_do_not_stand_before_the_others(
        self, log: EventLog, pool: asyncpg.Pool, run_id: RunId
    ) -> None:
        await here(pool, vouches=False)
        other = RunId(uuid4())
        await append(log, other, OPENED[0], e.RunStarted(host="gone", definition=OPENED[1].definition))
        await shown(pool, log)
        await pool.execute("UPDATE runs SET started_at = clock_timestamp() - interval '6 minutes'")
        await Judge(pool, log, RunReconciliationSettings(enabled=True, max_runs_per_scan=1)).scan()
        assert isinstance(await last_of(log, other), e.RunFailed)
        assert len(await events_of(log, run_id)) == len(OPENED)


async def test_what_a_host_gave_up_is_closed_without_waiting(log: EventLog, pool: asyncpg.Pool) -> None:
    """DRAIN-1"""
    [run_id] = await left_behind(log, pool, OPENED, silent="0 s")
    await pool.execute("UPDATE run_heartbeats SET seen_at = '-infinity'")
    await Judge(pool, log).scan()
    end = await last_of(log, run_id)
    assert isinstance(end, e.RunFailed)
    assert end.error == f"its host {HOST} stopped before the run had ended"


async def test_a_scan_takes_page_after_page(log: EventLog, pool: asyncpg.Pool) -> None:
    """RECON-1: `max_runs_per_scan` bounds what is in hand at once, not how many are closed."""
    runs = await left_behind(log, pool, *[OPENED] * 7)
    judge = Judge(pool, log, RunReconciliationSettings(enabled=True, max_runs_per_scan=3))
    await judge.scan()
    assert {type(await last_of(log, run_id)) for run_id in runs} == {e.RunFailed}


async def test_two_that_scan_at_once_close_each_run_once(log: EventLog, pool: asyncpg.Pool) -> None:
    """RECON-2: without a singleton every host scans."""
    runs = await left_behind(log, pool, *[OPENED] * 50)
    judges = [Judge(pool, log, host=f"judge-{number}") for number in range(4)]
    announced: list[RunId] = []
    for judge in judges:
        judge.orphans.on_orphaned.append(lambda run_id: noted(announced, run_id))
    await asyncio.gather(*(judge.scan() for judge in judges))
    assert sorted(announced) == sorted(runs)
    assert {len(await events_of(log, run_id)) for run_id in runs} == {len(OPENED) + 1}


async def test_of_two_with_the_same_stale_list_one_closes_and_the_other_does_nothing(
    log: EventLog, pool: asyncpg.Pool
) -> None:
    """RECON-2: compare and set on the run's version, whatever the list says."""
    runs = await left_behind(log, pool, *[OPENED] * 10)
    judges = [Judge(pool, log, host=f"judge-{number}") for number in range(2)]
    stale = [await judge.orphans.histories(runs) for judge in judges]

    async def close_all(judge: Judge, number: int) -> int:
        orphans = [Orphan(run_id=run_id, host=HOST, silent_for_s=300) for run_id in runs]
        return sum([await judge.orphans.close(one, stale[number][one.run_id]) for one in orphans])

    to_announce = await asyncio.gather(*(close_all(judge, number) for number, judge in enumerate(judges)))
    assert sum(to_announce) == 10
    closed = [judge.count("tracon_runs_orphaned_total") for judge in judges]
    lost = [judge.count("tracon_reconciliation_conflicts_total") for judge in judges]
    assert (sum(closed), sum(lost)) == (10, 10)
    assert {len(await events_of(log, run_id)) for run_id in runs} == {len(OPENED) + 1}


async def test_an_owner_that_writes_after_all_keeps_its_run(log: EventLog, pool: asyncpg.Pool) -> None:
    """RECON-2: it lives, so it is let go, and its next heartbeat vouches for it again."""
    [run_id] = await left_behind(log, pool, OPENED)
    judge = Judge(pool, log)
    history = (await judge.orphans.histories([run_id]))[run_id]
    await append(log, run_id, calling(1), after=len(OPENED))
    assert not await judge.orphans.close(Orphan(run_id=run_id, host=HOST, silent_for_s=300), history)
    assert await last_of(log, run_id) == calling(1)
    assert judge.count("tracon_reconciliation_conflicts_total") == 1


async def test_a_host_does_not_judge_its_own_runs(log: EventLog, pool: asyncpg.Pool) -> None:
    """RECON-2: its heartbeats may fail while it lives, and it would know if it did not."""
    [run_id] = await left_behind(log, pool, OPENED, host="judge")
    await Judge(pool, log, host="judge").scan()
    assert len(await events_of(log, run_id)) == len(OPENED)
    assert await rows(pool) == 1


async def test_after_an_outage_the_others_get_their_turn_to_be_heard_of(
    log: EventLog, pool: asyncpg.Pool
) -> None:
    """RECON-3: everybody was silent while the database was away, and that says nothing about anybody."""
    [run_id] = await left_behind(log, pool, OPENED)
    await Judge(pool, log, steady_s=SETTINGS.heartbeat_interval - 1).scan()
    assert len(await events_of(log, run_id)) == len(OPENED)
    await Judge(pool, log, steady_s=SETTINGS.heartbeat_interval).scan()
    assert await last_of(log, run_id) == ORPHANED


class TestAnnouncing:
    """RECON, CONT: whoever continues runs is told of each at least once, however a scan ends."""

    async def test_everything_is_closed_before_anybody_is_told_of_anything(
        self, log: EventLog, pool: asyncpg.Pool
    ) -> None:
        """RECON-1: page after page; to go on with the first takes time that the last does not have."""
        runs = await left_behind(log, pool, *[OPENED] * 5)
        runs.append(await waiting(log, pool, QUEUED))
        judge = Judge(pool, log, RunReconciliationSettings(enabled=True, max_runs_per_scan=2))
        open_then = dict[RunId, int]()

        async def listen(orphan: RunId) -> None:
            ends = [isinstance(await last_of(log, run_id), e.RunFailed) for run_id in runs]
            open_then[orphan] = ends.count(False)

        judge.orphans.on_orphaned.append(listen)
        await judge.scan()
        assert open_then == dict.fromkeys(runs, 0)
        assert await rows(pool) == 0

    async def test_one_that_could_not_be_told_of_now_is_told_of_with_the_next_scan(
        self, log: EventLog, pool: asyncpg.Pool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """EVENT-8: that the store is away, or that this host leaves, is no crash."""
        runs = await left_behind(log, pool, *[OPENED] * 3)
        judge, told = Judge(pool, log), list[RunId]()

        async def listen(orphan: RunId) -> None:
            told.append(orphan)
            if orphan == runs[0] and told.count(orphan) == 1:
                raise Draining

        judge.orphans.on_orphaned.append(listen)
        await judge.scan()
        assert [record.levelname for record in caplog.records if "announced" in record.message] == ["WARNING"]
        assert await pool.fetchval("SELECT run_id FROM run_heartbeats") == runs[0]
        await judge.scan()
        assert sorted(told) == sorted([*runs, runs[0]])
        assert await rows(pool) == 0

    async def test_a_listener_that_crashes_is_told_again_with_the_next_scan(
        self, log: EventLog, pool: asyncpg.Pool, caplog: pytest.LogCaptureFixture
    ) -> None:
        [run_id] = await left_behind(log, pool, OPENED)
        judge, told = Judge(pool, log), list[RunId]()

        async def listen(orphan: RunId) -> None:
            told.append(orphan)
            if len(told) == 1:
                raise RuntimeError("a defect")

        judge.orphans.on_orphaned.append(listen)
        await judge.scan()
        assert [record.message for record in caplog.records].count("orphan.not_announced") == 1
        assert await rows(pool) == 1
        await judge.scan()
        assert told == [run_id, run_id]
        assert await rows(pool) == 0
        assert len(await events_of(log, run_id)) == len(OPENED) + 1

    async def test_a_scan_that_died_after_closing_is_made_good_by_another_host(
        self, log: EventLog, pool: asyncpg.Pool
    ) -> None:
        [run_id] = await left_behind(log, pool, (*OPENED, ORPHANED))
        await claim(pool, run_id, since="90 s")
        judge, told = Judge(pool, log), list[RunId]()
        judge.orphans.on_orphaned.append(lambda orphan: noted(told, orphan))
        await judge.scan()
        assert told == [run_id]
        assert await rows(pool) == 0

    async def test_a_claim_of_another_host_is_respected_for_a_while(
        self, log: EventLog, pool: asyncpg.Pool
    ) -> None:
        [run_id] = await left_behind(log, pool, OPENED)
        await claim(pool, run_id, since="30 s")
        await Judge(pool, log).scan()
        assert len(await events_of(log, run_id)) == len(OPENED)

    async def test_of_a_run_that_ended_otherwise_nobody_is_told(
        self, log: EventLog, pool: asyncpg.Pool
    ) -> None:
        await left_behind(log, pool, (*OPENED, e.RunCancelled()))
        judge, told = Judge(pool, log), list[RunId]()
        judge.orphans.on_orphaned.append(lambda orphan: noted(told, orphan))
        await judge.scan()
        assert told == []
        assert await rows(pool) == 0


async def test_a_run_that_this_build_cannot_read_holds_up_no_other(log: EventLog, pool: asyncpg.Pool) -> None:
    """EVENT-9: a newer build will close it."""
    unreadable = RunId(uuid4())
    await insert(pool, unreadable, ("run.dreamt.v9", b"{}"))
    await vouch(pool, [unreadable], silent="1 hour")
    [run_id] = await left_behind(log, pool, OPENED)
    await Judge(pool, log, RunReconciliationSettings(enabled=True, max_runs_per_scan=1)).scan()
    assert await last_of(log, run_id) == ORPHANED
    assert await pool.fetchval("SELECT run_id FROM run_heartbeats") == unreadable


async def test_a_heartbeat_of_no_run_is_swept_away(log: EventLog, pool: asyncpg.Pool) -> None:
    """A host that is about to open a waiting run vouches for it first, and may die before it does."""
    await vouch(pool, [RunId(uuid4())], silent="1 hour")
    await Judge(pool, log).scan()
    assert await rows(pool) == 0


async def test_the_databases_clock_decides(log: EventLog, pool: asyncpg.Pool) -> None:
    """RECON-3: a heartbeat is as old as the database says, down to the second."""
    now: datetime = await pool.fetchval("SELECT clock_timestamp()")
    young, old = await left_behind(log, pool, OPENED, OPENED, silent="0 s")
    for run_id, age in ((young, "298 s"), (old, "301 s")):
        stamp = f"UPDATE run_heartbeats SET seen_at = $2::timestamptz - interval '{age}' WHERE run_id = $1"
        await pool.execute(stamp, run_id, now)
    await Judge(pool, log).scan()
    assert isinstance(await last_of(log, old), e.RunFailed)
    assert not isinstance(await last_of(log, young), e.RunFailed)


async def shown(pool: asyncpg.Pool, log: EventLog) -> None:
    """Return when the views show everything."""
    views = Views(pool, log)
    task = asyncio.create_task(views.run())
    await views.wait_for("runs", await log.end_position(), timeout_s=10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def waiting(log: EventLog, pool: asyncpg.Pool, events: Sequence[e.Event]) -> RunId:
    """A run that has been accepted, and has not begun, for six minutes."""
    run_id = RunId(uuid4())
    await append(log, run_id, *events)
    await shown(pool, log)
    await pool.execute("UPDATE runs SET created_at = created_at - interval '6 minutes'")
    return run_id


async def here(pool: asyncpg.Pool, *, vouches: bool, silent: str = "0 s") -> None:
    await pool.execute(
        "INSERT INTO hosts (host_id, live_runs, vouches, seen_at)"
        f" VALUES ($1, 1, $2, clock_timestamp() - interval '{silent}')",
        HOST,
        vouches,
    )


async def claim(pool: asyncpg.Pool, run_id: RunId, *, since: str) -> None:
    await pool.execute(
        "UPDATE run_heartbeats SET claimed_by = 'another-judge',"
        f" claimed_at = clock_timestamp() - interval '{since}' WHERE run_id = $1",
        run_id,
    )


async def noted(told: list[RunId], run_id: RunId) -> None:
    told.append(run_id)
