"""Runs the actors of live runs. A crash is logged once, here, and answered here."""

import asyncio
import logging
import random

from app.db.errors import StoreUnavailable
from app.metrics import Metrics
from app.store.stream_writer import Fenced
from app.supervision.closing import Closing
from app.supervision.live_actor import LiveActor
from domain.decide import RunAlreadyEnded
from domain.errors import NotFound
from domain.failure import ErrorClass, RunError
from domain.ids import RunId

log = logging.getLogger(__name__)

CRASHED = RunError(
    message="the run's actor crashed; the host's log has the cause under this run's id",
    type="internal_error",
    error_class=ErrorClass.INTERNAL,
)
STORE_LOST = RunError(
    message="the event store could not be reached for longer than store.outage_patience",
    type="store_unavailable",
    error_class=ErrorClass.INFRASTRUCTURE,
)
NEVER_BEGUN = RunError(
    message="the run was recorded but could not be acknowledged, so it was never begun",
    type="interrupted",
    error_class=ErrorClass.INFRASTRUCTURE,
)


class Supervisor:
    """Sees each actor to its end, and closes what an actor could not close itself."""

    def __init__(self, closing: Closing, metrics: Metrics) -> None:
        self._closing = closing
        self._metrics = metrics
        self.stopping = False
        """Whether the host cuts its runs off. Nobody else has a right to cancel an actor's task."""

    async def supervise(self, actor: LiveActor) -> None:
        """Run one actor. Whatever happens to it, its run does not stay open while this host lives."""
        try:
            await actor.run()
        except Fenced:
            self._metrics.runs_fenced.inc()
            log.warning("run.fenced", extra={"run_id": str(actor.run_id)})
        except StoreUnavailable:
            log.error("run.store_lost", extra={"run_id": str(actor.run_id)})
            await self.close(actor.run_id, STORE_LOST)
        except asyncio.CancelledError:
            if self.stopping:
                raise
            log.exception("run.cancelled_by_a_stranger", extra={"run_id": str(actor.run_id)})
            await self.close(actor.run_id, CRASHED)
        except Exception:
            log.exception("run.crashed", extra={"run_id": str(actor.run_id)})
            await self.close(actor.run_id, CRASHED)
        finally:
            actor.release()

    async def close(self, run_id: RunId, error: RunError) -> None:
        """End a run that nothing works on any more, however long the store takes to come back."""
        pause_s = 0.1
        while True:
            try:
                await self._closing.close(run_id, error)
            except (RunAlreadyEnded, NotFound):
                return
            except StoreUnavailable:
                await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - jitter, not a secret
                pause_s = min(pause_s * 2, 5.0)
            else:
                return
