"""How many workflows this host runs at a time (`workflows.max_concurrent_runs`)."""

import asyncio

from app.metrics import Metrics


class Slots:
    """First come, first served. Whoever waits has a run that is on record as queued, and is cancelled like
    one that runs (CANCEL-4)."""

    def __init__(self, places: int, metrics: Metrics) -> None:
        self._places = asyncio.Semaphore(places)
        self._waiting = 0
        metrics.workflows_waiting.set_function(lambda: self._waiting)

    async def take(self) -> None:
        """Wait for a place."""
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1

    def give_back(self) -> None:
        self._places.release()
