"""Looking into runs that a heartbeat found to be somebody else's."""

import asyncio
import logging
from collections.abc import Collection

from app.db.errors import StoreUnavailable
from app.supervision.roster import Roster
from app.supervision.runs import RunNotFound, Runs
from domain.ids import RunId

log = logging.getLogger(__name__)


class Doubts:
    """Stops the actors of runs that were closed elsewhere, before their next effect finds out.

    A run that was found silent may have been left open all the same. It goes on, and asks the log before its
    next effect (`ownership`).
    """

    def __init__(self, runs: Runs, roster: Roster) -> None:
        self._runs = runs
        self._roster = roster
        self._looking: set[asyncio.Task[None]] = set()

    def look_into(self, run_ids: Collection[RunId]) -> None:
        task = asyncio.create_task(self._look(run_ids), name="doubts")
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def close(self) -> None:
        for task in self._looking:
            task.cancel()
        await asyncio.gather(*self._looking, return_exceptions=True)

    async def _look(self, run_ids: Collection[RunId]) -> None:
        log.warning("runs.in_doubt", extra={"runs": len(run_ids)})
        try:
            for run_id in run_ids:
                if (await self._runs.load(run_id)).status.ended:
                    self._roster.fence(run_id)
        except (StoreUnavailable, RunNotFound) as error:
            log.warning("doubts.not_settled", extra={"error": str(error)})
