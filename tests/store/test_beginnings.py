"""The first events of a new stream, kept for the one who comes right after."""

import asyncio
from contextlib import aclosing

import pytest

from app.store import beginnings
from app.store.beginnings import MAX_EVENTS, MAX_STREAMS, Beginnings
from app.store.event_log import EventLog
from domain.events import Event, Recorded
from domain.ids import StreamId
from tests.store.samples import change, collect, stream, texts
from tests.store.test_feed import Asked, asked, counted, reads

__all__ = ["asked", "counted"]


async def written(log: EventLog, run: StreamId, first: int, *some: str) -> list[Recorded[Event]]:
    return await log.append(change(run, first, *some))


async def test_who_begins_a_stream_and_follows_it_asks_the_database_for_nothing(
    counted: EventLog, asked: Asked
) -> None:
    """IDEM-4: a submission without a key makes no query for what this host has just written."""
    run = stream()
    await written(counted, run, 0, "a", "b")
    await written(counted, run, 2, "c")
    async with aclosing(counted.follow(run, after=0)) as following:
        assert texts(await collect(following, 3)) == ["a", "b", "c"]
        await written(counted, run, 3, "d")
        assert texts(await collect(following, 1)) == ["d"]
    assert reads(asked, "read_stream_page") == []


async def test_the_next_follower_reads_for_itself(counted: EventLog, asked: Asked) -> None:
    run = stream()
    await written(counted, run, 0, "a")
    for _ in range(2):
        async with aclosing(counted.follow(run, after=0)) as following:
            assert texts(await collect(following, 1)) == ["a"]
    assert len(reads(asked, "read_stream_page")) == 1


async def test_a_follower_in_the_middle_gets_what_comes_after(counted: EventLog, asked: Asked) -> None:
    run = stream()
    await written(counted, run, 0, "a", "b", "c")
    async with aclosing(counted.follow(run, after=2)) as following:
        assert texts(await collect(following, 1)) == ["c"]
    assert reads(asked, "read_stream_page") == []


async def test_what_another_host_wrote_in_between_is_not_passed_over(
    log: EventLog, counted: EventLog
) -> None:
    run = stream()
    await written(counted, run, 0, "a")
    await written(log, run, 1, "from elsewhere")
    await written(counted, run, 2, "c")
    async with aclosing(counted.follow(run, after=0)) as following:
        assert texts(await collect(following, 3)) == ["a", "from elsewhere", "c"]


async def test_a_stream_that_is_not_new_is_not_kept(log: EventLog) -> None:
    kept, run = Beginnings(), stream()
    await written(log, run, 0, "a")
    kept.keep(await written(log, run, 1, "b"))
    assert kept.take(run, 0) == []


async def test_neither_many_streams_nor_long_ones_are_kept(log: EventLog) -> None:
    kept, long, runs = Beginnings(), stream(), [stream() for _ in range(MAX_STREAMS + 1)]
    kept.keep(await written(log, long, 0, *map(str, range(MAX_EVENTS))))
    kept.keep(await written(log, long, MAX_EVENTS, "one more"))
    assert kept.take(long, 0) == []
    for run in runs:
        kept.keep(await written(log, run, 0, "a"))
    assert [bool(kept.take(run, 0)) for run in runs] == [True] * MAX_STREAMS + [False]


async def test_a_stream_that_nobody_comes_for_is_let_go(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginnings, "KEPT_S", 0.0)
    kept, run = Beginnings(), stream()
    kept.keep(await written(log, run, 0, "a"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert kept.take(run, 0) == []
