"""EVENT-8: the store cannot be reached."""

import asyncio
import time

import asyncpg
import pytest

from app.db.errors import StoreUnavailable
from app.metrics import Metrics
from app.store.event_log import EventLog, VersionConflict
from tests.store.conftest import OpenLog
from tests.store.proxy import Proxy
from tests.store.samples import PATIENCE_S, change, stream, texts, until
from tests.store.slow_writer import SlowWriter


async def test_without_patience_an_append_fails_at_once_while_the_store_is_down(
    frail: EventLog, proxy: Proxy
) -> None:
    await down(frail, proxy)
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as refused:
        await frail.append(change(stream(), 0, "a"))
    assert time.monotonic() - began < 0.5
    assert refused.value.retry_after_s > 0


async def test_an_outage_is_noticed_and_shown_without_anybody_appending(
    proxy: Proxy, open_log: OpenLog
) -> None:
    metrics = Metrics()
    log: EventLog = await open_log(connect=proxy.connect, metrics=metrics)
    await log.append(change(stream(), 0, "a"))
    assert (log.down, shown(metrics)) == (None, 1.0)
    await down(log, proxy)
    assert shown(metrics) == 0.0
    await up(log, proxy)
    assert shown(metrics) == 1.0


async def test_batches_are_counted_by_how_they_ended(open_log: OpenLog) -> None:
    metrics = Metrics()
    log: EventLog = await open_log(metrics=metrics)
    run = stream()
    await log.append(change(run, 0, "a", "b"))
    with pytest.raises(VersionConflict):
        await log.append(change(run, 0, "late"))
    counted = {
        outcome: metrics.registry.get_sample_value("tracon_append_seconds_count", {"outcome": outcome})
        for outcome in ("written", "conflict")
    }
    assert counted == {"written": 1.0, "conflict": 1.0}
    assert metrics.registry.get_sample_value("tracon_append_events_sum") == 3.0


async def test_with_patience_an_append_waits_until_the_store_is_back(frail: EventLog, proxy: Proxy) -> None:
    await down(frail, proxy)
    runs = [stream() for _ in range(5)]
    appending = [
        asyncio.create_task(frail.append(change(run, 0, "kept"), patience_s=PATIENCE_S)) for run in runs
    ]
    await proxy.accept()
    for run, told in zip(runs, await asyncio.gather(*appending), strict=True):
        assert texts(told) == ["kept"]
        assert await frail.read_stream(run) == told


async def test_patience_has_an_end(frail: EventLog, proxy: Proxy) -> None:
    await down(frail, proxy)
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await frail.append(change(stream(), 0, "a"), patience_s=0.1)
    assert 0.1 <= time.monotonic() - began < 1.0


async def test_an_append_under_way_when_the_store_goes_holds_until_its_patience_is_over(
    frail: EventLog, proxy: Proxy
) -> None:
    patient, impatient = stream(), stream()
    proxy.hold()
    holding = asyncio.create_task(frail.append(change(patient, 0, "a"), patience_s=PATIENCE_S))
    failing = asyncio.create_task(frail.append(change(impatient, 0, "a")))
    await proxy.refuse()
    with pytest.raises(StoreUnavailable):
        await failing
    assert not holding.done()
    proxy.let_go()
    await proxy.accept()
    assert await holding == await frail.read_stream(patient)


async def test_a_log_may_open_before_its_store(proxy: Proxy, open_log: OpenLog) -> None:
    await proxy.refuse()
    log: EventLog = await open_log(connect=proxy.connect)
    await until(lambda: knows(log, down=True))
    appending = asyncio.create_task(log.append(change(stream(), 0, "a"), patience_s=PATIENCE_S))
    await proxy.accept()
    assert texts(await appending) == ["a"]


async def test_a_log_closes_at_once_while_its_store_is_down(proxy: Proxy, open_log: OpenLog) -> None:
    await proxy.refuse()
    log: EventLog = await open_log(connect=proxy.connect)
    async with asyncio.timeout(1):
        await log.close()


async def test_closing_settles_what_was_submitted_and_takes_no_more(frail: EventLog) -> None:
    run = stream()
    appending = asyncio.create_task(frail.append(change(run, 0, "a")))
    await asyncio.sleep(0)  # it is submitted
    await frail.close()
    assert texts(await appending) == ["a"]
    with pytest.raises(StoreUnavailable, match="writing no more"):
        await frail.append(change(run, 1, "b"))


async def test_a_cancelled_caller_does_not_cancel_its_batch(frail: EventLog, proxy: Proxy) -> None:
    proxy.hold()
    mates = [asyncio.create_task(frail.append(change(stream(), 0, "a"))) for _ in range(3)]
    gone = stream()
    cancelled = asyncio.create_task(frail.append(change(gone, 0, "a")))

    async def stored() -> bool:
        return bool(await frail.read_stream(gone))

    await until(stored)
    cancelled.cancel()
    proxy.let_go()
    assert [texts(told) for told in await asyncio.gather(*mates)] == [["a"]] * 3
    assert cancelled.cancelled()


async def test_more_than_the_queue_holds_waits_its_turn(database: str, open_log: OpenLog) -> None:
    """Back-pressure: callers wait for room, and all of them are served."""
    log: EventLog = await open_log(max_waiting=3)
    told = await asyncio.gather(*(log.append(change(stream(), 0, str(n))) for n in range(50)))
    assert [texts(one) for one in told] == [[str(n)] for n in range(50)]


async def test_with_the_queue_full_and_the_store_down_nobody_waits_for_room(
    proxy: Proxy, open_log: OpenLog
) -> None:
    log: EventLog = await open_log(connect=proxy.connect, max_waiting=1)
    await log.append(change(stream(), 0, "warm"))
    await down(log, proxy)
    run = stream()
    waiting = asyncio.create_task(log.append(change(run, 0, "a"), patience_s=PATIENCE_S))
    await asyncio.sleep(0)  # it has the room
    with pytest.raises(StoreUnavailable):
        await log.append(change(stream(), 0, "b"), patience_s=PATIENCE_S)
    assert not waiting.done()
    await proxy.accept()
    assert texts(await waiting) == ["a"]


async def test_a_store_that_takes_a_question_and_never_answers_is_down(
    frail: EventLog, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that hangs says nothing; that is answer enough."""
    monkeypatch.setattr("app.store.commit.REPLY_TIMEOUT_S", 0.1)
    run = stream()
    proxy.hold()
    holding = asyncio.create_task(frail.append(change(run, 0, "a"), patience_s=PATIENCE_S))
    with pytest.raises(StoreUnavailable):
        await frail.append(change(stream(), 0, "b"))
    proxy.let_go()
    assert await holding == await frail.read_stream(run)


async def test_a_passing_refusal_of_postgres_is_not_the_callers_to_see(
    frail: EventLog, pool: asyncpg.Pool, slow: SlowWriter
) -> None:
    """An operator cancelled the statement: nothing was stored, so it is sent again."""
    run = stream()
    async with slow.append("theirs", run) as transaction:
        appending = asyncio.create_task(frail.append(change(run, 0, "ours")))
        query = (
            "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )

        async def cancelled() -> bool:
            return bool(await pool.fetchval(query))

        await until(cancelled)
        await transaction.rollback()
    assert await appending == await frail.read_stream(run)


def shown(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("tracon_store_up")


async def knows(log: EventLog, *, down: bool) -> bool:
    return (log.down is not None) is down


async def down(log: EventLog, proxy: Proxy) -> None:
    await proxy.refuse()
    await until(lambda: knows(log, down=True))


async def up(log: EventLog, proxy: Proxy) -> None:
    await proxy.accept()
    await until(lambda: knows(log, down=False))
