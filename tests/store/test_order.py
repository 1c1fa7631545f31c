"""EVENT-5: in the log's order, no event ever appears behind a reader's position."""

import asyncio
from contextlib import aclosing

import asyncpg

from app.db.pool import connect
from app.store.event_log import EventLog
from tests.store.conftest import OpenLog
from tests.store.samples import change, collect, stream, texts, until
from tests.store.slow_writer import SlowWriter


async def read(log: EventLog, after: int = 0) -> tuple[list[str], bool]:
    page = await log.read_page(after, 100)
    return texts(page.events), page.pending


async def read_on(log: EventLog, after: int = 0) -> list[str]:
    """Read until nothing is pending; no more than once again is needed here."""
    found, pending = await read(log, after)
    return (await read(log, after))[0] if pending else found


async def test_a_writer_that_drew_first_and_commits_last_is_never_passed(
    log: EventLog, slow: SlowWriter
) -> None:
    async with slow.append("slow") as transaction:
        await log.append(change(stream(), 0, "quick"))
        assert await read(log) == ([], True)
        assert await read(log) == ([], True)
        await transaction.commit()
    assert await read_on(log) == ["slow", "quick"]


async def test_what_comes_before_the_slow_writer_is_given_out(log: EventLog, slow: SlowWriter) -> None:
    await log.append(change(stream(), 0, "before"))
    async with slow.append("slow") as transaction:
        await log.append(change(stream(), 0, "quick"))
        assert await read(log) == (["before"], True)
        await transaction.commit()
    assert await read_on(log) == ["before", "slow", "quick"]


async def test_a_subscriber_waits_for_the_slow_writer_and_for_no_longer(
    log: EventLog, slow: SlowWriter
) -> None:
    async with aclosing(log.subscribe(after=0)) as pages:
        first = asyncio.create_task(collect(pages, 2))
        async with slow.append("slow") as transaction:
            await log.append(change(stream(), 0, "quick"))
            await transaction.commit()
        assert texts(await first) == ["slow", "quick"]


async def test_a_position_that_was_rolled_back_stalls_nobody(log: EventLog, slow: SlowWriter) -> None:
    async with slow.append("never") as transaction:
        await transaction.rollback()
    await log.append(change(stream(), 0, "quick"))
    assert await read(log) == (["quick"], False)


async def test_a_writer_that_dies_stalls_nobody(log: EventLog, slow: SlowWriter) -> None:
    async with slow.append("never"):
        await log.append(change(stream(), 0, "quick"))
        assert await read(log) == ([], True)

    async def gone() -> bool:
        return not (await read(log))[1]

    await until(gone)
    assert await read(log) == (["quick"], False)


async def test_whoever_begins_later_is_not_waited_for(log: EventLog, slow: SlowWriter) -> None:
    """Under load somebody always has an append under way; only those from before the hole was seen count."""
    async with slow.append("never") as first:
        await log.append(change(stream(), 0, "quick"))
        assert await read(log) == ([], True)
        async with slow.append("later") as second:
            await first.rollback()
            assert await read(log) == (["quick"], False)
            await log.append(change(stream(), 0, "last"))
            assert await read(log, after=2) == ([], True)
            await second.commit()
    assert await read_on(log, after=2) == ["later", "last"]


async def test_a_transaction_that_has_nothing_to_do_with_the_log_stalls_nobody(
    log: EventLog, slow: SlowWriter, database: str
) -> None:
    """It holds a transaction id and even other advisory locks for as long as it likes."""
    idle = await connect(database)
    await idle.execute("BEGIN")
    await idle.execute("SELECT pg_current_xact_id(), pg_advisory_xact_lock(7301, 2)")
    try:
        async with slow.append("never") as transaction:
            await transaction.rollback()
        await log.append(change(stream(), 0, "quick"))
        assert await read(log) == (["quick"], False)
    finally:
        await idle.close()


async def test_readers_at_different_places_do_not_disturb_each_other(log: EventLog, slow: SlowWriter) -> None:
    async with slow.append("slow 1") as first:
        await log.append(change(stream(), 0, "quick 2"))
        assert await read(log) == ([], True)
        async with slow.append("slow 3") as second:
            await log.append(change(stream(), 0, "quick 4"))
            assert await read(log, after=2) == ([], True)
            assert await read(log) == ([], True)
            await first.commit()
            assert await read_on(log) == ["slow 1", "quick 2"]
            assert await read(log, after=2) == ([], True)
            await second.commit()
        assert await read_on(log, after=2) == ["slow 3", "quick 4"]


async def test_strict_appends_take_turns(open_log: OpenLog, slow: SlowWriter, pool: asyncpg.Pool) -> None:
    """DESIGN: positions then become visible in their order, for readers that know nothing of holes."""
    log: EventLog = await open_log(strict=True)

    async def waiting() -> bool:
        query = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
        return bool(await pool.fetchval(query))

    async with slow.append("slow") as transaction:
        appending = asyncio.create_task(log.append(change(stream(), 0, "quick")))
        await until(waiting)
        assert await log.end_position() == 0
        await transaction.commit()
    [quick] = await appending
    assert quick.position == 2
    assert await read(log) == (["slow", "quick"], False)


async def test_pages_go_on_where_the_last_one_ended(log: EventLog) -> None:
    for number in range(7):
        await log.append(change(stream(), 0, str(number)))
    after, found = 0, []
    while events := (await log.read_page(after, 3)).events:
        assert len(events) <= 3
        found += texts(events)
        after = events[-1].position
    assert found == ["0", "1", "2", "3", "4", "5", "6"]
