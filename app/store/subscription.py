"""Following the whole log: notifications are a hint, polling is the truth."""

import asyncio
import logging
from collections.abc import AsyncGenerator

from app.db.errors import StoreUnavailable
from app.outage import Outage
from app.store.reader import Reader
from app.store.wakeups import POLL_S, Wakeups
from domain.events import Event, Recorded

log = logging.getLogger(__name__)

_PAGE = 500
_HOLE_LOOK_S = 0.002


async def subscribe(
    reader: Reader, wakeups: Wakeups, after: int, *, page: int = _PAGE
) -> AsyncGenerator[list[Recorded[Event]], None]:
    """Every event after a position, in order, each once, for ever; an outage of the store is waited out."""
    outage = Outage(log, "subscription")
    with wakeups.bell() as bell:
        while True:
            bell.silence()
            try:
                found = await reader.read_page(after, page)
            except StoreUnavailable as error:
                outage.met(error)
                await asyncio.sleep(POLL_S)
                continue
            outage.over()
            if found.events:
                after = found.events[-1].position
                yield found.events
            if found.pending:
                await asyncio.sleep(_HOLE_LOOK_S)
            elif len(found.events) < page:
                await bell.wait(POLL_S)
