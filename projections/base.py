"""What a projection is, and what it needs of the log."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias, get_args

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from domain.events import Event, Recorded, RunEvent, TextDelta

Connection: TypeAlias = asyncpg.Connection | PoolConnectionProxy
Fact: TypeAlias = Recorded[Event]

Kinds: TypeAlias = frozenset[type[Event]]
"""Types of events, as a set: a view looks at each event of the log, and most are not for it."""

RUN_EVENTS: Kinds = frozenset(get_args(RunEvent))
DEEDS_OF_RUNS: Kinds = RUN_EVENTS - {TextDelta}
"""All but the pieces of text that `ModelReplied` repeats: most of a log is those."""


def of_kinds(page: Iterable[Fact], kinds: Kinds) -> list[Fact]:
    """Those events of the page that are of these types, in their order."""
    return [recorded for recorded in page if type(recorded.event) in kinds]


class BrokenStream(Exception):
    """A stream is not what the log promises: it has a gap, say. Restore it; nothing may be skipped."""


class Page(Protocol):
    """Some of the log, in order. `pending`: more may follow within moments, when an open append has ended."""

    @property
    def events(self) -> Sequence[Fact]: ...

    @property
    def pending(self) -> bool: ...


class Bell(Protocol):
    """Rings when there may be news of the log. A hint: it may ring for nothing, or stay silent."""

    def silence(self) -> None: ...

    async def wait(self, at_most_s: float) -> None: ...


class LogReader(Protocol):
    """The log as its followers see it."""

    async def read_page(self, after: int, limit: int) -> Page:
        """What follows `after`; never past a place that an open append may still fill (EVENT-5).

        Raises UnknownTopic or UnreadableEvent rather than leave an event out.
        """

    async def end_position(self) -> int:
        """The position of the last event, 0 for an empty log."""

    def bell(self) -> AbstractContextManager[Bell]:
        """A bell for as long as it is needed."""


class Projection(Protocol):
    """One view: its rows are a function of the events and of nothing else, no clock and no other view.

    The caller owns the transaction and the position, and makes sure that nobody else writes the rows.
    """

    @property
    def name(self) -> str:
        """The name of its position row. Fixed for ever."""

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        """Fold these events, the next ones in order, into the rows. Where pages end makes no difference."""

    async def reset(self, conn: Connection) -> None:
        """Delete all rows."""
