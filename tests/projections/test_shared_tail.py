"""The end of the log, read once for all views: each sees all of it, in order, wherever it stands."""

import random
from collections.abc import Awaitable, Callable
from uuid import uuid4

import asyncpg
import pytest

from app.store.event_log import EventLog
from projections.base import Fact
from projections.shared_tail import SharedTail
from tests.domain.facts import OPENED
from tests.projections.writing import Interfering, poison, write


async def nothing(_: int) -> None:
    """Let the page be read as it is."""


def counted(
    log: EventLog, before: Callable[[int], Awaitable[None]] = nothing
) -> tuple[Interfering, SharedTail]:
    reader = Interfering(log, before)
    return reader, SharedTail(reader)


async def some(log: EventLog) -> int:
    return await write(log, *OPENED, run_id=uuid4())


async def test_what_one_view_has_read_costs_the_others_no_query(log: EventLog) -> None:
    reader, tail = counted(log)
    await some(log)
    first, *others = [list((await tail.read_page(0, 500)).events) for _ in range(9)]
    assert first
    assert others == [first] * 8
    assert reader.pages == 1


async def test_who_is_in_the_middle_gets_what_follows_and_who_wants_less_gets_less(log: EventLog) -> None:
    reader, tail = counted(log)
    for _ in range(3):
        await some(log)
    whole = list((await tail.read_page(0, 500)).events)
    assert list((await tail.read_page(whole[1].position, 500)).events) == whole[2:]
    assert list((await tail.read_page(0, 1)).events) == whole[:1]
    assert reader.pages == 1


async def test_who_is_at_the_end_hears_of_what_is_new(log: EventLog) -> None:
    """EVENT-5"""
    reader, tail = counted(log)
    end = await some(log)
    await tail.read_page(0, 500)
    assert list((await tail.read_page(end, 500)).events) == []
    later = await some(log)
    assert [one.position for one in (await tail.read_page(end, 500)).events][-1] == later
    assert [one.position for one in (await tail.read_page(0, 500)).events][-1] == later
    assert reader.pages == 3


async def test_of_two_that_ask_at_the_same_time_neither_misses_or_repeats_anything(log: EventLog) -> None:
    """EVENT-5: the other one's page is there, and longer, before this one's comes."""
    found: list[Fact] = []

    async def another(number: int) -> None:
        if number == 1:
            found.extend((await tail.read_page(0, 1)).events)

    _, tail = counted(log, another)
    await some(log)
    await some(log)
    whole = list((await log.read_page(0, 500)).events)
    assert list((await tail.read_page(0, 500)).events) == whole
    assert found == whole[:1]
    assert list((await tail.read_page(0, 500)).events) == whole


async def test_what_cannot_be_read_is_no_page_of_anybodys(log: EventLog, pool: asyncpg.Pool) -> None:
    """EVENT-6: it is met again by whoever comes there; nothing is skipped."""
    reader, tail = counted(log)
    end = await some(log)
    await tail.read_page(0, 500)
    await poison(pool)
    for _ in range(2):
        with pytest.raises(Exception, match=r"run\.paused\.v9"):
            await tail.read_page(end, 500)
    assert reader.pages == 3


@pytest.mark.parametrize("seed", range(3))
async def test_views_of_every_pace_see_the_log_as_it_is(log: EventLog, seed: int) -> None:
    """EVENT-5, EVENT-6: whole, in order, each once, however they take turns and however far behind one is."""
    chance = random.Random(seed)
    _, tail = counted(log)
    seen: list[list[Fact]] = [[] for _ in range(4)]
    for _ in range(150):
        if chance.random() < 0.3:
            await some(log)
        view = seen[chance.choice((0, 0, 0, 1, 1, 2, 3))]  # the last one falls far behind
        after = view[-1].position if view else 0
        view.extend((await tail.read_page(after, chance.choice((1, 2, 5, 500)))).events)
    whole = list((await log.read_page(0, 5000)).events)
    for view in seen:
        assert view == whole[: len(view)]
        while more := (await tail.read_page(view[-1].position if view else 0, 500)).events:
            view.extend(more)
        assert view == whole
