"""Stopping without cutting anybody off: nothing new begins, what is live gets its time (DRAIN)."""

import asyncio
import logging

from app.clock import elapsed_s
from app.metrics import Metrics
from app.settings import DrainSettings
from app.supervision.roster import Roster
from domain.errors import Unavailable

log = logging.getLogger(__name__)


class Draining(Unavailable):
    """This host stops and begins nothing new. Send the request to another one, or again in a moment."""

    code = "draining"

    def __init__(self) -> None:
        super().__init__("this host is stopping and starts no more runs")


class Drain:
    """Whoever begins runs or takes work asks here first."""

    def __init__(self, settings: DrainSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._ends_at = float("inf")
        self.begun = asyncio.Event()
        """Set once nothing new may begin. A worker leases nothing after that."""

    @property
    def left_s(self) -> float:
        """How long what is live may still take."""
        return max(0.0, self._ends_at - elapsed_s())

    def admit(self) -> None:
        """Raise Draining if nothing new may begin here."""
        if self.begun.is_set():
            raise Draining

    def begin(self) -> None:
        """From now on nothing new. With the setting off, what is live gets no time either."""
        timeout_s = self._settings.timeout if self._settings.enabled else 0.0
        self._ends_at = elapsed_s() + timeout_s
        self._metrics.draining.set(1)
        self.begun.set()

    async def wait_for(self, roster: Roster) -> None:
        """Return when no run is live, or when the time is over."""
        log.info("drain.waits", extra={"runs": len(roster), "at_most_s": round(self.left_s, 3)})
        await roster.emptied(self.left_s)
        log.info("drain.over", extra={"cut_off": len(roster)})
