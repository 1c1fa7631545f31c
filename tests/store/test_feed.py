"""Following one stream, live or finished, on any host: the same events with the same numbers (EVENT-1)."""

import asyncio
import gc
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import cast

import asyncpg
import pytest

from app.db.pool import connect, set_codecs
from app.store.event_log import EventLog, LiveFrame
from app.store.feed import Feed
from app.store.follower import BUFFER
from app.store.mapper import EventMapper
from app.store.reader import Reader
from app.store.sql import sql
from app.store.stream_writer import StreamWriter
from domain.codec import UnreadableEvent
from domain.events import Event
from domain.ids import StreamId, Version
from tests.store.conftest import OpenLog
from tests.store.interrupted import Interrupted
from tests.store.samples import PATIENCE_S, change, collect, said, stream, texts, until

Asked = list[tuple[str, tuple[object, ...]]]


@pytest.fixture
async def asked() -> Asked:
    """The queries of `counted`, with their arguments."""
    return []


@pytest.fixture
async def counted(database: str, asked: Asked) -> AsyncIterator[EventLog]:
    """A host whose reads are noted."""

    async def note(connection: asyncpg.Connection) -> None:
        await set_codecs(connection)
        connection.add_query_logger(lambda query: asked.append((query.query, query.args)))

    dedicated = partial(connect, database)
    async with (
        asyncpg.create_pool(database, min_size=1, init=note) as pool,
        EventLog(pool, dedicated, listen=dedicated) as log,
    ):
        yield log


def reads(asked: Asked, name: str) -> list[tuple[object, ...]]:
    return [arguments for query, arguments in asked if query == sql(name)]


def asked_for(asked: Asked) -> list[list[StreamId]]:
    return [cast(list[StreamId], streams) for streams, *_ in reads(asked, "read_streams")]


async def write(log: EventLog, run: StreamId, *some: str) -> StreamWriter:
    pen = StreamWriter(log, run, version=Version(0))
    for text in some:
        pen.record([said(text)])
        await pen.flush()
    return pen


async def test_what_this_host_writes_reaches_its_followers_without_a_query(
    counted: EventLog, asked: Asked, log: EventLog
) -> None:
    """Only the stream that lives elsewhere is asked for."""
    run, elsewhere = stream(), stream()
    pen, other_pen = await write(counted, run, "a"), await write(log, elsewhere, "a")

    async def asks() -> bool:
        return bool(asked_for(asked))

    async with (
        aclosing(counted.follow(run, after=0)) as following,
        aclosing(counted.follow(elsewhere, after=0)) as following_elsewhere,
    ):
        assert texts(await collect(following, 1)) == ["a"]
        await collect(following_elsewhere, 1)
        asked.clear()
        for text in "bcdef":
            waiting = asyncio.create_task(collect(following, 1))
            pen.record([said(text)])
            assert texts(await waiting) == [text]
        assert reads(asked, "read_stream") == []
        other_pen.record([said("b")])
        await until(asks)
    assert [streams for streams in asked_for(asked) if streams != [elsewhere]] == []


async def test_a_reader_that_cannot_keep_up_misses_and_repeats_nothing(log: EventLog) -> None:
    run = stream()
    pen = await write(log, run, "0")
    async with aclosing(log.follow(run, after=0)) as following:
        found = await collect(following, 1)
        total = 3 * BUFFER
        for number in range(1, total):
            pen.record([said(str(number))])
            await pen.flush()  # at its own pace: it never waits for the reader
        found += await collect(following, total - 1)
        pen.record([said("live again")])
        found += await collect(following, 1)
    assert texts(found) == [*map(str, range(total)), "live again"]
    assert [one.sequence for one in found] == list(range(1, total + 2))


@pytest.mark.parametrize("seed", range(3))
async def test_readers_of_every_pace_and_start_see_the_same(log: EventLog, seed: int) -> None:
    run, total = stream(), 400
    pen = await write(log, run, "0")

    async def follow(after: int, pace: random.Random) -> list[str]:
        found: list[str] = []
        async with aclosing(log.follow(run, after=after)) as following:
            while len(found) < total - after:
                found += texts(await anext(following))
                for _ in range(pace.choice((0, 0, 1, 40))):
                    await asyncio.sleep(0)
        return found

    paces = [(after, random.Random(seed * 10 + after)) for after in (0, 1, 50, 399)]
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        following = [tasks.create_task(follow(after, pace)) for after, pace in paces]
        burst = random.Random(seed)
        while pen.end < total:
            pen.record([said(str(pen.end))])
            if not burst.randrange(6):
                await pen.flush()
    for (after, _), found in zip(paces, following, strict=True):
        assert found.result() == [str(number) for number in range(after, total)]


async def test_what_overflows_while_a_follower_reads_is_read_again(log: EventLog, pool: asyncpg.Pool) -> None:
    interrupted = Interrupted(pool)
    feed = Feed(Reader(cast(asyncpg.Pool, interrupted), EventMapper()))
    run = stream()
    await log.append(change(run, 0, "0"))

    async def meanwhile() -> None:
        for number in range(1, BUFFER + 2):
            feed.publish(await log.append(change(run, number, str(number))))

    interrupted.then = meanwhile
    async with aclosing(feed.follow(run, after=0)) as following:
        found = await collect(following, BUFFER + 2)
    assert texts(found) == [str(number) for number in range(BUFFER + 2)]


async def test_an_event_of_this_host_does_not_come_before_one_of_another_that_it_follows(
    open_log: OpenLog, log: EventLog
) -> None:
    """A command here moved a run that lives elsewhere, and the news from there is still on its way."""
    deaf: EventLog = await open_log(listen=None)
    run = stream()
    await log.append(change(run, 0, "a"))
    async with aclosing(deaf.follow(run, after=0)) as following:
        await collect(following, 1)
        await log.append(change(run, 1, "b"))
        await deaf.append(change(run, 2, "c"))
        assert texts(await collect(following, 2)) == ["b", "c"]


async def test_a_stream_that_another_host_writes_is_followed_live(
    log: EventLog, open_log: OpenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By notification: here, polling would be too late."""
    monkeypatch.setattr("app.store.remote.POLL_S", 10 * PATIENCE_S)
    run, other = stream(), await open_log()
    async with asyncio.timeout(PATIENCE_S):
        await log.listening.wait()
    pen = await write(other, run, "0")
    async with aclosing(log.follow(run, after=0)) as following:
        found = await collect(following, 1)
        for number in range(1, 10):
            waiting = asyncio.create_task(collect(following, 1))
            pen.record([said(str(number))])
            found += await waiting
    assert texts(found) == [str(number) for number in range(10)]


async def test_without_notifications_a_remote_stream_is_polled(open_log: OpenLog, log: EventLog) -> None:
    deaf: EventLog = await open_log(listen=None)
    run = stream()
    pen = await write(log, run, "a")
    async with aclosing(deaf.follow(run, after=0)) as following:
        await collect(following, 1)
        pen.record([said("b")])
        assert texts(await collect(following, 1)) == ["b"]


async def test_all_remote_streams_of_a_host_are_asked_for_in_one_query(
    counted: EventLog, asked: Asked, log: EventLog
) -> None:
    runs = [stream() for _ in range(5)]
    pens = [await write(log, run, "a") for run in runs]
    following = [counted.follow(run, after=0) for run in runs]
    for one in following:
        await collect(one, 1)
    waiting = [asyncio.create_task(collect(one, 1)) for one in following]

    async def asks_for_all() -> bool:
        return any(set(streams) == set(runs) for streams in asked_for(asked))

    await until(asks_for_all)
    asked.clear()
    for pen in pens:
        pen.record([said("b")])
    for told in await asyncio.gather(*waiting):
        assert texts(told) == ["b"]
    assert asked_for(asked)
    assert all(set(streams) == set(runs) for streams in asked_for(asked))
    assert reads(asked, "read_stream") == []
    for one in following:
        await one.aclose()


async def test_followers_of_a_stream_share_what_one_of_them_found(log: EventLog, pool: asyncpg.Pool) -> None:
    """The second joins between two polls and reads ahead: the first must not be left behind the next poll."""
    feed = Feed(Reader(pool, EventMapper()))  # nobody polls for this one
    run = stream()
    await log.append(change(run, 0, "a"))
    first, second = feed.follow(run, after=0), feed.follow(run, after=0)
    await collect(first, 1)
    waiting = asyncio.create_task(collect(first, 1))
    await log.append(change(run, 1, "b"))
    assert texts(await collect(second, 2)) == ["a", "b"]
    assert texts(await waiting) == ["b"]
    await first.aclose()
    await second.aclose()


@pytest.mark.parametrize("how", ["fenced", "closed", "forgotten"])
async def test_a_stream_whose_pen_is_gone_is_followed_as_a_remote_one(
    log: EventLog, open_log: OpenLog, how: str
) -> None:
    """EVENT-3: another host closed the run, and this host's followers see that too."""
    other: EventLog = await open_log()
    run = stream()
    pen: StreamWriter | None = await write(log, run, "a")
    assert pen is not None
    async with aclosing(log.follow(run, after=0)) as following:
        await collect(following, 1)
        await other.append(change(run, 1, "closed elsewhere"))
        if how == "fenced":
            pen.record([said("lost")])
        elif how == "closed":
            pen.close()
        pen = pen if how != "forgotten" else None
        gc.collect()
        assert texts(await collect(following, 1)) == ["closed elsewhere"]


async def test_a_follower_may_start_anywhere_and_wait_for_a_stream_that_is_not_there_yet(
    log: EventLog,
) -> None:
    run = stream()
    async with aclosing(log.follow(run, after=0)) as following:
        waiting = asyncio.create_task(collect(following, 2))
        await write(log, run, "a", "b")
        assert texts(await waiting) == ["a", "b"]


async def test_live_frames_come_in_between_for_those_who_want_them(log: EventLog) -> None:
    """EVENT-7: `recording.deltas = "live"`. They have no number, and nobody gets one who is past it."""
    run = stream()
    pen = await write(log, run, "begun")
    async with (
        aclosing(log.follow_live(run, after=0)) as watching,
        aclosing(log.follow(run, after=0)) as following,
    ):
        await collect(following, 1)
        begun = await anext(watching)
        for text in ("some", "text"):
            pen.show(said(text))
        shown = await anext(watching)
        pen.record([said("done")])
        await pen.flush()
        assert shown == [LiveFrame(after=1, event=said("some")), LiveFrame(after=1, event=said("text"))]
        done = await anext(watching)
        assert [frame.event for frame in (*begun, *done)] == [said("begun"), said("done")]
        assert texts(await collect(following, 1)) == ["done"]
        log.publish_live(run, said("late"), after=1)
        pen.show(said("next"))
        assert await anext(watching) == [LiveFrame(after=2, event=said("next"))]


async def test_a_follower_that_leaves_is_forgotten(log: EventLog) -> None:
    run = stream()
    pen = await write(log, run, "a")
    following = log.follow(run, after=0)
    await collect(following, 1)
    waiting = asyncio.create_task(anext(following))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert log.following == 0
    pen.record([said("b")])
    await pen.flush()


async def test_a_row_that_cannot_be_read_fails_its_own_followers_only(
    open_log: OpenLog, log: EventLog
) -> None:
    """EVENT-9: it is not skipped, and the host goes on."""
    keyed: EventLog = await open_log(mapper=EventMapper(key=bytes(16)))
    other: EventLog = await open_log(mapper=EventMapper(key=bytes(16)))
    good, bad = stream(), stream()
    pen = await write(other, good, "a")
    await other.append(change(bad, 0, "a"))
    fine, failing = keyed.follow(good, after=0), keyed.follow(bad, after=0)
    await collect(fine, 1)
    await collect(failing, 1)
    waiting = asyncio.create_task(collect(failing, 1))
    await log.append(change(bad, 1, "without the key"))
    with pytest.raises(UnreadableEvent, match=f"event 2 of stream {bad}"):
        await waiting
    pen.record([said("b")])
    assert texts(await collect(fine, 1)) == ["b"]
    await fine.aclose()


async def test_two_thousand_followers_need_no_task_of_their_own(log: EventLog) -> None:
    async def ready() -> bool:
        return log.following == 2000

    run = stream()
    pen = await write(log, run, "a")
    following = [log.follow(run, after=1) for _ in range(2000)]
    waiting = [asyncio.ensure_future(anext(one)) for one in following]
    await until(ready)
    assert len(asyncio.all_tasks()) <= 2000 + 8
    pen.record([said("b")])
    told: list[list[Event]] = [[one.event for one in got] for got in await asyncio.gather(*waiting)]
    assert told == [[said("b")]] * 2000
    for one in following:
        await one.aclose()
