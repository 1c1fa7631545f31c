"""Following the whole log: notifications are a hint, polling is the truth."""

import asyncio
from contextlib import aclosing
from functools import partial

import asyncpg
import pytest

from app.db.errors import StoreUnavailable
from app.db.pool import connect, open_pool
from app.store.event_log import EventLog
from app.store.notifier import CHANNEL
from tests.store.conftest import OpenLog
from tests.store.proxy import Proxy
from tests.store.samples import PATIENCE_S, change, collect, stream, texts, until


@pytest.fixture
async def watcher(open_log: OpenLog, database: str) -> EventLog:
    """A host that writes nothing itself. `open_log` has it listen on a direct connection."""
    opened: EventLog = await open_log()
    return opened


async def test_another_hosts_append_wakes_a_subscriber(
    watcher: EventLog, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By notification: here, polling would be too late."""
    monkeypatch.setattr("app.store.subscription.POLL_S", 10 * PATIENCE_S)
    async with aclosing(watcher.subscribe(after=0)) as pages:
        await log.append(change(stream(), 0, "first"))
        assert texts(await collect(pages, 1)) == ["first"]
        waiting = asyncio.create_task(collect(pages, 1))
        async with asyncio.timeout(PATIENCE_S):
            await watcher.listening.wait()
        await log.append(change(stream(), 0, "second"))
        assert texts(await waiting) == ["second"]


async def test_without_notifications_a_subscriber_polls(open_log: OpenLog, log: EventLog) -> None:
    """As through a pooler that LISTEN cannot pass."""
    deaf: EventLog = await open_log(listen=None)
    async with aclosing(deaf.subscribe(after=0)) as pages:
        await log.append(change(stream(), 0, "first"))
        assert texts(await collect(pages, 1)) == ["first"]
        waiting = asyncio.create_task(collect(pages, 1))
        await asyncio.sleep(0)  # it has gone to sleep over an empty page, or is about to
        await log.append(change(stream(), 0, "second"))
        assert texts(await waiting) == ["second"]


async def test_a_subscription_survives_the_loss_of_every_connection(
    watcher: EventLog, log: EventLog, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Postgres restarts: nothing is missed, nothing comes twice."""
    found: list[str] = []
    enough = asyncio.Event()

    async def follow() -> None:
        async with aclosing(watcher.subscribe(after=0)) as pages:
            async for page in pages:
                found.extend(texts(page))
                if len(found) >= 30:
                    enough.set()

    following = asyncio.create_task(follow())
    killer = await connect(database)
    try:
        for number in range(30):
            await log.append(change(stream(), 0, str(number)), patience_s=PATIENCE_S)
            if number % 5 == 2:
                await killer.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        async with asyncio.timeout(2 * PATIENCE_S):
            await enough.wait()
    finally:
        await killer.close()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert found == [str(number) for number in range(30)]


async def test_a_subscription_waits_out_an_outage(
    log: EventLog, proxy: Proxy, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.store.subscription.POLL_S", 0.02)
    async with (
        await open_pool(proxy.dsn) as frail,
        EventLog(frail, proxy.connect) as watcher,
        aclosing(watcher.subscribe(after=0)) as pages,
    ):
        await log.append(change(stream(), 0, "before"))
        assert texts(await collect(pages, 1)) == ["before"]
        waiting = asyncio.create_task(collect(pages, 1))
        await proxy.refuse()

        async def noticed() -> bool:
            return "outage.began" in caplog.messages

        await until(noticed)
        await log.append(change(stream(), 0, "during"))
        assert not waiting.done()
        await proxy.accept()
        assert texts(await waiting) == ["during"]


async def test_the_listening_connection_is_opened_again(
    watcher: EventLog, database: str, pool: asyncpg.Pool
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await watcher.listening.wait()
    query = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = current_database() AND query LIKE 'LISTEN%{CHANNEL}%'"
    )
    assert await pool.fetchval(query)
    await until(lambda: _is(watcher, listening=False))
    await until(lambda: _is(watcher, listening=True))


async def test_a_host_that_cannot_listen_still_serves(open_log: OpenLog, database: str) -> None:
    async def refused() -> asyncpg.Connection:
        raise StoreUnavailable("no such port")

    log: EventLog = await open_log(connect=partial(connect, database), listen=refused)
    async with aclosing(log.subscribe(after=0)) as pages:
        await log.append(change(stream(), 0, "a"))
        assert texts(await collect(pages, 1)) == ["a"]


async def test_what_stops_a_task_of_the_log_is_told_to_who_watches(open_log: OpenLog) -> None:
    async def broken() -> asyncpg.Connection:
        raise AssertionError("a defect")

    log: EventLog = await open_log(connect=broken)
    appending = asyncio.create_task(log.append(change(stream(), 0, "a"), patience_s=PATIENCE_S))
    with pytest.raises(AssertionError, match="a defect"):
        await log.watch()
    with pytest.raises(StoreUnavailable, match="writing no more"):
        await appending


async def _is(log: EventLog, *, listening: bool) -> bool:
    return log.listening.is_set() is listening
