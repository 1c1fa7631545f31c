"""All views of a host: keeping them up to date, waiting for them, and how far they are behind."""

import asyncio
from collections.abc import Iterable

import asyncpg
import msgspec

from domain.errors import Unavailable
from projections.base import LogReader, Projection
from projections.catalog import PACES, PROJECTIONS, UnknownProjection
from projections.projector import Pace, Projector
from projections.shared_tail import SharedTail
from projections.sql import sql
from projections.unavailable import told_as_unavailable


class ProjectionBehind(Unavailable):
    """The view does not show that event yet. Read it as it is, or try again."""

    code = "projection_behind"

    def __init__(self, name: str, position: int) -> None:
        super().__init__(f"projection {name} has not come to position {position} yet")
        self.name = name
        self.position = position


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a view is behind the log."""

    events: int
    """Positions that it has not folded; those that hold no event count too."""
    seconds: float
    """Age of the oldest event that it has not folded, by the database's clock; 0 if there is none."""


class Views:
    def __init__(
        self,
        pool: asyncpg.Pool,
        reader: LogReader,
        projections: Iterable[Projection] = PROJECTIONS,
        pace: Pace | None = None,
    ) -> None:
        self._pool = pool
        self._reader = reader
        self._poll_s = (pace or Pace()).poll_s
        tail = SharedTail(reader)
        self._projectors = {
            projection.name: Projector(projection, pool, tail, pace or PACES.get(projection.name))
            for projection in projections
        }

    async def run(self) -> None:
        """Keep every view up to date until cancelled. No outage ends it."""
        async with asyncio.TaskGroup() as tasks:
            for projector in self._projectors.values():
                tasks.create_task(projector.run(), name=f"projector {projector.name}")
            tasks.create_task(self._pass_on_the_bell(), name="projectors' bell")

    async def wait_for(self, name: str, position: int, timeout_s: float) -> None:
        """Return once the view shows every event up to `position`, whichever host folds it.

        Raises ProjectionBehind when the time is over, UnknownProjection for a name that is none.
        """
        projector = self._projectors.get(name)
        if projector is None:
            raise UnknownProjection(name)
        try:
            async with asyncio.timeout(timeout_s):
                with told_as_unavailable():
                    await projector.reach(position)
        except TimeoutError as error:
            raise ProjectionBehind(name, position) from error

    async def lags(self) -> dict[str, Lag]:
        """By name, in one statement. Raises Unavailable."""
        with told_as_unavailable():
            rows = await self._pool.fetch(sql("lags"), list(self._projectors))
        return {row["name"]: Lag(events=row["events"], seconds=row["seconds"]) for row in rows}

    def failing(self) -> dict[str, bool]:
        """By name, whether this host was last seen unable to fold it."""
        return {name: projector.failing for name, projector in self._projectors.items()}

    async def _pass_on_the_bell(self) -> None:
        with self._reader.bell() as bell:
            while True:
                bell.silence()
                await bell.wait(self._poll_s)
                for projector in self._projectors.values():
                    projector.nudge()
