"""One owner of periodic work: how a term begins, how it goes on, and that it ends in time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path

import asyncpg
import pytest

from app.db.pool import open_pool
from app.metrics import Metrics
from app.settings import SingletonExecutionSettings
from app.supervision.duties import Duties, Duty
from app.supervision.singleton import LeaseTerm, Singleton, Term
from domain.errors import Unavailable
from tests.http.client import eventually
from tests.store.proxy import proxied

# The file asks for 3 s at least; what is tested here does not depend on how long it is.
LEASE = SingletonExecutionSettings(enabled=True, lease_duration=0.6)
CALM = SingletonExecutionSettings(enabled=True, lease_duration=30.0)


class Worker:
    """Notes, by the database's clock, that it acts: as often as it can, for as long as its term lasts."""

    def __init__(self, pool: asyncpg.Pool, owner: str, settings: SingletonExecutionSettings = LEASE) -> None:
        self.metrics = Metrics()
        self.singleton = Singleton("work", owner, pool, settings, self.metrics)
        self.terms: list[Term] = []
        self.acted_at: list[datetime] = []
        self._pool = pool

    async def work(self, term: Term) -> None:
        self.terms.append(term)
        while True:
            if term.lasts():
                self.acted_at.append(await self._pool.fetchval("SELECT clock_timestamp()"))
            await asyncio.sleep(0.005)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Worker"]:
        task = asyncio.create_task(self.singleton.run(self.work))
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @property
    def acting(self) -> bool:
        return self.metrics.registry.get_sample_value("tracon_lease_held", {"lease": "work"}) == 1


async def test_of_three_hosts_one_works_and_two_stand_by(pool: asyncpg.Pool) -> None:
    """SINGLE-1"""
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(Worker(pool, f"h{n}").running()) for n in range(3)]
        await eventually(lambda: any(len(worker.acted_at) > 50 for worker in workers))
        assert sorted(worker.acting for worker in workers) == [False, False, True]
        assert sorted(bool(worker.acted_at) for worker in workers) == [False, False, True]


async def test_a_term_is_renewed_before_it_runs_out(pool: asyncpg.Pool) -> None:
    """SINGLE-1: at a third, so that two renewals may fail."""
    async with Worker(pool, "h").running() as worker:
        await eventually(lambda: bool(worker.acted_at))
        await eventually(lambda: (worker.acted_at[-1] - worker.acted_at[0]).total_seconds() > 3 * 0.6)
        assert len(worker.terms) == 1
    assert await pool.fetchval("SELECT epoch FROM leases") == 1


async def test_a_holder_that_stops_lets_the_next_one_begin_at_once(pool: asyncpg.Pool) -> None:
    """SINGLE-1: with a lease of half a minute, in much less than that."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Worker(pool, "first", CALM).running())
        await eventually(lambda: first.acting)
    async with Worker(pool, "second", CALM).running() as second:
        await eventually(lambda: second.acting)
    assert await pool.fetchval("SELECT epoch FROM leases") == 2


async def test_switched_off_every_host_does_its_own_work(pool: asyncpg.Pool) -> None:
    """SINGLE-1"""
    off = SingletonExecutionSettings()
    async with Worker(pool, "one", off).running() as one, Worker(pool, "two", off).running() as two:
        await eventually(lambda: bool(one.acted_at and two.acted_at))
    assert await pool.fetchval("SELECT count(*) FROM leases") == 0


async def test_a_holder_that_cannot_renew_stops_before_its_lease_runs_out(
    database: str, pool: asyncpg.Pool, tmp_path: Path
) -> None:
    """SINGLE-2: by the database's clock, and the next one does not act before."""
    async with proxied(tmp_path, database) as proxy, await open_pool(proxy.dsn, min_size=1) as frail:
        cut_off, other = Worker(pool, "cut-off"), Worker(pool, "other")
        cut_off.singleton = Singleton("work", "cut-off", frail, LEASE, cut_off.metrics)
        async with cut_off.running():
            await eventually(lambda: len(cut_off.acted_at) > 20)
            async with other.running():
                proxy.hold()  # its renewals go nowhere, while its work still reaches the database
                await eventually(lambda: bool(other.acted_at))
                began_at = await pool.fetchval("SELECT acquired_at FROM leases")
                proxy.let_go()
        assert cut_off.acted_at[-1] < began_at < other.acted_at[0]


async def test_no_two_hosts_ever_act_at_once(pool: asyncpg.Pool) -> None:
    """SINGLE-2: through twenty changes of hands, by the database's clock."""
    acts: list[tuple[datetime, int]] = []

    async def host(number: int) -> None:
        while True:
            had_enough = asyncio.Event()

            async def work(term: Term, had_enough: asyncio.Event = had_enough) -> None:
                assert isinstance(term, LeaseTerm)
                for _ in range(5):
                    if term.lasts():
                        acts.append((await pool.fetchval("SELECT clock_timestamp()"), term.epoch))
                had_enough.set()
                await asyncio.Event().wait()

            running = asyncio.create_task(Singleton("work", f"h{number}", pool, LEASE, Metrics()).run(work))
            await had_enough.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    hosts = [asyncio.create_task(host(number)) for number in range(3)]
    await eventually(lambda: bool(acts) and acts[-1][1] >= 20, within_s=30)
    for task in hosts:
        task.cancel()
    await asyncio.gather(*hosts, return_exceptions=True)
    assert [epoch for _, epoch in sorted(acts)] == sorted(epoch for _, epoch in acts)


def test_a_term_counts_from_when_it_was_asked_for_and_ends_before_the_lease() -> None:
    """SINGLE-2"""
    now = [100.0]
    term = LeaseTerm(7, asked_at=99.0, duration_s=10, clock=lambda: now[0])
    now[0] = 107.9
    assert term.lasts()
    now[0] = 108.1
    assert not term.lasts()
    term.extend(asked_at=107.0)
    assert term.lasts()


class TestDuties:
    """Periodic work in one place."""

    @pytest.fixture
    def duties(self, pool: asyncpg.Pool) -> Duties:
        metrics = Metrics()
        return Duties(Singleton("work", "h", pool, SingletonExecutionSettings(), metrics), metrics)

    async def test_a_duty_that_crashes_is_logged_and_has_its_next_round(
        self, duties: Duties, caplog: pytest.LogCaptureFixture
    ) -> None:
        rounds = {"crashing": 0, "postponed": 0, "well": 0}

        async def crash(_: Term) -> None:
            rounds["crashing"] += 1
            raise RuntimeError("a defect")

        async def postpone(_: Term) -> None:
            rounds["postponed"] += 1
            raise Unavailable("not now")

        async def work(_: Term) -> None:
            rounds["well"] += 1

        for name, perform in (("crashing", crash), ("postponed", postpone), ("well", work)):
            duties.add(Duty(name=name, period_s=0.01, perform=perform))
        performing = asyncio.create_task(duties.run(asyncio.Event()))
        await eventually(lambda: min(rounds.values()) >= 3)
        performing.cancel()
        await asyncio.gather(performing, return_exceptions=True)
        told = {record.message for record in caplog.records}
        assert {"duty.failed", "outage.began"} <= told
        assert [record.exc_info is not None for record in caplog.records if record.message == "duty.failed"]

    async def test_they_stop_when_their_host_is_about_to(self, duties: Duties) -> None:
        """DRAIN-1"""
        began, draining, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def work(_: Term) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        duties.add(Duty(name="work", period_s=0.01, perform=work))
        performing = asyncio.create_task(duties.run(draining))
        await began.wait()
        draining.set()
        await asyncio.wait_for(stopped.wait(), 10)
        assert not performing.done(), "it is a part of its host, and the host goes on"
        performing.cancel()
        await asyncio.gather(performing, return_exceptions=True)
