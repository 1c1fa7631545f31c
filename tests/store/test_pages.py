"""Pages have a size in bytes too: nobody holds a log of large events in memory, and nobody misses one."""

import asyncpg
import pytest

from app.store.event_log import EventLog
from app.store.mapper import EventMapper
from app.store.reader import Reader
from domain.events import Event, Recorded
from tests.store.samples import change, stream, texts

SMALL, GIANT = "s" * 10, "g" * 5000
SAID = (SMALL, SMALL, GIANT, GIANT, SMALL, SMALL)
PAGES = [3, 1, 2]
"""How many of them go on a page of a thousand bytes: one that goes over is its last."""


@pytest.fixture
def reader(pool: asyncpg.Pool) -> Reader:
    return Reader(pool, EventMapper(), page_bytes=1000)


async def test_a_page_of_the_log_ends_where_it_has_enough(log: EventLog, reader: Reader) -> None:
    """And says that there may be more, or a projector would rest in the middle of its work."""
    told = await log.append(change(stream(), 0, *SAID))
    sizes, after, pending, found = [], 0, True, list[Recorded[Event]]()
    while pending:
        page = await reader.read_page(after, 100)
        sizes.append(len(page.events))
        found += page.events
        after, pending = found[-1].position, page.pending
    assert (sizes, found) == (PAGES, told)


async def test_a_page_of_a_stream_ends_where_it_has_enough(log: EventLog, reader: Reader) -> None:
    run = stream()
    told = await log.append(change(run, 0, *SAID))
    pages = [await reader.read_stream_page(run, after, 100) for after in (0, 3, 4, 6)]
    assert [len(page.events) for page in pages] == [*PAGES, 0]
    assert [page.pending for page in pages] == [True, True, False, False]
    assert [event for page in pages for event in page.events] == told


async def test_a_full_page_of_the_log_is_no_reason_to_hurry(log: EventLog, reader: Reader) -> None:
    """Its reader knows by the number of events."""
    await log.append(change(stream(), 0, *SAID[:2]))
    page = await reader.read_page(0, 2)
    assert (texts(page.events), page.pending) == ([SMALL, SMALL], False)
