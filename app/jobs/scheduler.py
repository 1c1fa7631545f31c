"""The scheduler: sees to it that due times are met, on every host; of several, the log lets one fire."""

import asyncio
import logging

import asyncpg

from app.clock import elapsed_s
from app.jobs.schedules import Schedules
from app.metrics import Metrics
from app.outage import Outage
from app.settings import SchedulesSettings
from domain.errors import Unavailable
from domain.schedule import Fire
from projections.read.schedules import Due, next_due

log = logging.getLogger(__name__)

_AT_ONCE = 100
_SHORTEST_REST_S = 0.05
"""The view may still show a due time that was settled a moment ago."""
_SET_ASIDE_S = 60.0


class Scheduler:
    """Sleeps until the first due time, or for a while, by the database's clock."""

    def __init__(
        self, schedules: Schedules, pool: asyncpg.Pool, settings: SchedulesSettings, metrics: Metrics
    ) -> None:
        self._schedules = schedules
        self._pool = pool
        self._settings = settings
        self._metrics = metrics
        self._set_aside: dict[tuple[str, str], float] = {}
        self._outage = Outage(log, "schedules")

    async def run(self) -> None:
        """Until cancelled. No outage ends it, and no schedule that cannot be fired."""
        while True:
            try:
                rest_s = await self._round()
                self._outage.over()
            except Unavailable as error:
                self._outage.met(error)
                rest_s = self._settings.poll_interval
            await asyncio.sleep(max(rest_s, _SHORTEST_REST_S))

    async def _round(self) -> float:
        """Settle what is due; return how long there is nothing to do."""
        coming = await next_due(self._pool, _AT_ONCE)
        for due in coming:
            if due.in_s <= 0 and self._set_aside.get(due[:2], 0.0) <= elapsed_s():
                await self._settle(due)
        waits = [due.in_s for due in coming if due.in_s > 0]
        return min([self._settings.poll_interval, *waits])

    async def _settle(self, due: Due) -> None:
        """The one place where a schedule that cannot be settled is answered: it is set aside for a while."""
        try:
            done = await self._schedules.settle(due.tenant, due.name)
        except Unavailable:
            raise
        except Exception:
            log.exception("schedule.crashed", extra={"schedule": due.name, "tenant": due.tenant})
            self._set_aside[due[:2]] = elapsed_s() + _SET_ASIDE_S
            return
        outcome = "beaten" if done is None else "fired" if isinstance(done, Fire) else "skipped"
        self._metrics.schedule_firings.labels(outcome).inc()
