"""EVENT-5: in the log's order, no event ever appears behind a reader's position."""

import asyncio
from contextlib import AsyncExitStack, aclosing
from typing import cast

import asyncpg

from app.db.pool import connect
from app.store.event_log import EventLog
from app.store.holes import Holes
from app.store.mapper import EventMapper
from app.store.reader import Reader
from tests.store.conftest import OpenLog
from tests.store.interrupted import Interrupted
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


async def test_what_is_settled_while_a_page_is_read_does_not_count_for_that_page(
    log: EventLog, slow: SlowWriter, pool: asyncpg.Pool
) -> None:
    """The page is older than the evidence: it may lack what has become visible since."""
    interrupted = Interrupted(pool)
    reader = Reader(cast(asyncpg.Pool, interrupted), EventMapper())
    async with slow.append("slow") as first:
        await log.append(change(stream(), 0, "quick"))

        async def meanwhile() -> None:
            await first.commit()
            async with slow.append("never") as second:
                await second.rollback()
            await log.append(change(stream(), 0, "last"))
            assert texts((await reader.read_page(0, 100)).events) == ["slow", "quick"]
            assert texts((await reader.read_page(2, 100)).events) == ["last"]

        interrupted.then = meanwhile
        page = await reader.read_page(0, 100)
    assert texts(page.events) == ["slow", "quick", "last"]


async def test_who_begins_while_the_evidence_is_gathered_is_not_overlooked(
    log: EventLog, slow: SlowWriter, pool: asyncpg.Pool
) -> None:
    interrupted = Interrupted(pool)
    holes = Holes(cast(asyncpg.Pool, interrupted))
    async with AsyncExitStack() as stack:

        async def meanwhile() -> None:
            await stack.enter_async_context(slow.append("slow"))
            await log.append(change(stream(), 0, "quick"))

        await log.append(change(stream(), 0, "before"))
        interrupted.then = meanwhile
        await holes.settle(1)
        assert not await holes.settle(2)


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
