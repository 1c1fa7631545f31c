"""A connection breaks between the question and the answer. Was it stored? The writer finds out."""

import asyncio
from functools import partial

import asyncpg
import pytest

from app.db.errors import StoreUnavailable
from app.db.pool import connect
from app.store.event_log import EventLog, VersionConflict
from tests.store.conftest import OpenLog
from tests.store.proxy import Proxy
from tests.store.samples import PATIENCE_S, change, stream, texts, until


async def test_what_was_stored_before_the_answer_was_lost_is_a_success(frail: EventLog, proxy: Proxy) -> None:
    """EVENT-8: acknowledged once it is found in the log, with the place and time that the lost answer had."""
    run, other = stream(), stream()
    proxy.lose_reply()
    told, told_other = await asyncio.gather(
        frail.append(change(run, 0, "a", "b")), frail.append(change(other, 0, "x"))
    )
    assert proxy.lost.is_set()
    assert await frail.read_stream(run) == told
    assert await frail.read_stream(other) == told_other


async def test_what_never_arrived_is_sent_again(frail: EventLog, proxy: Proxy) -> None:
    run = stream()
    proxy.lose_request()
    told = await frail.append(change(run, 0, "a"))
    assert proxy.lost.is_set()
    assert await frail.read_stream(run) == told


@pytest.mark.parametrize("text", ["theirs", "ours"])
async def test_a_version_that_somebody_else_took_meanwhile_is_a_conflict(
    frail: EventLog, log: EventLog, proxy: Proxy, text: str
) -> None:
    """EVENT-3: also when the other host wrote the very same bytes."""
    run = stream()
    proxy.lose_request(then_hold=True)
    appending = asyncio.create_task(frail.append(change(run, 0, "ours")))
    async with asyncio.timeout(PATIENCE_S):
        await proxy.lost.wait()
    await log.append(change(run, 0, text))
    proxy.let_go()
    with pytest.raises(VersionConflict):
        await appending
    assert texts(await log.read_stream(run)) == [text]


async def test_only_an_append_that_was_sent_before_may_recognise_its_own_rows(frail: EventLog) -> None:
    """The same writer, version and bytes, but another append: that is a conflict like any other."""
    run = stream()
    await frail.append(change(run, 0, "a"))
    with pytest.raises(VersionConflict):
        await frail.append(change(run, 0, "a"))


async def test_one_lost_answer_settles_each_append_of_its_batch_by_itself(
    frail: EventLog, log: EventLog, proxy: Proxy
) -> None:
    """EVENT-4, on the way that resolves what is unknown."""
    taken, free = stream(), [stream() for _ in range(3)]
    await log.append(change(taken, 0, "theirs"))
    proxy.lose_request()
    outcomes = await asyncio.gather(
        *(frail.append(change(one, 0, "ours")) for one in (taken, *free)), return_exceptions=True
    )
    assert [type(one) for one in outcomes] == [VersionConflict, list, list, list]
    for one in free:
        assert texts(await log.read_stream(one)) == ["ours"]


async def test_when_patience_is_over_the_store_is_told_to_be_unavailable(
    frail: EventLog, log: EventLog, proxy: Proxy
) -> None:
    """EVENT-8: it may be stored all the same, and then is there for whoever reads next."""
    run = stream()
    proxy.hold()
    appending = asyncio.create_task(frail.append(change(run, 0, "a")))

    async def stored() -> bool:
        return bool(await log.read_stream(run))

    await until(stored)
    await proxy.refuse()
    with pytest.raises(StoreUnavailable):
        await appending


async def test_killed_connections_lose_and_double_nothing(
    open_log: OpenLog, pool: asyncpg.Pool, database: str
) -> None:
    """Every append that was acknowledged is stored exactly once, and every caller gets an answer."""
    log: EventLog = await open_log(connect=partial(connect, database))
    told: list[tuple[object, int]] = []
    ready = asyncio.Event()

    async def write(appends: int) -> None:
        run = stream()
        for number in range(appends):
            [one] = await log.append(change(run, number, str(number)), patience_s=PATIENCE_S)
            told.append((one.stream_id, one.sequence))
            ready.set()

    async def kill(times: int) -> None:
        for _ in range(times):
            ready.clear()
            await ready.wait()
            await pool.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE '%tracon_append%'"
                " AND pid <> pg_backend_pid()"
            )

    async with asyncio.timeout(3 * PATIENCE_S), asyncio.TaskGroup() as tasks:
        killing = tasks.create_task(kill(25))
        while not killing.done():
            await asyncio.gather(*(write(20) for _ in range(16)))
    rows = await pool.fetch("SELECT originator_id, originator_version FROM stored_events")
    assert sorted(told, key=str) == sorted(map(tuple, rows), key=str)
    assert len(told) == len(set(told))
