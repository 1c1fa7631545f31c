"""The live runs of this host: one supervised task each."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from app.metrics import Metrics
from app.store.errors import Fenced
from app.supervision.live_actor import LiveActor, PenLost
from app.supervision.presence import Presence
from app.supervision.supervisor import Supervisor
from domain.ids import RunId, run_stream


class Roster:
    """Whoever is in it is running here; a run leaves when its actor has ended and its end is recorded.

    The host answers for these runs. One that is cut off it gives up only when it stops altogether.
    """

    def __init__(self, supervisor: Supervisor, metrics: Metrics, presence: Presence) -> None:
        self._supervisor = supervisor
        self._presence = presence
        metrics.runs_live.set_function(self.__len__)
        self._live: dict[RunId, tuple[LiveActor, asyncio.Task[None]]] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[LiveActor]:
        return iter([actor for actor, _ in self._live.values()])

    def find(self, run_id: RunId) -> LiveActor | None:
        entry = self._live.get(run_id)
        return entry[0] if entry else None

    def start(self, actor: LiveActor) -> asyncio.Task[None]:
        """Give the run its task, and return it. It leaves the roster by itself."""
        task = asyncio.create_task(self._supervisor.supervise(actor), name=f"run {actor.run_id}")
        self._live[actor.run_id] = (actor, task)
        self._presence.enter(actor.run_id)
        task.add_done_callback(lambda done: self._left(actor.run_id, done))
        return task

    def fence(self, run_id: RunId) -> None:
        """Somebody else has closed the run: have its actor stop wherever it is."""
        if actor := self.find(run_id):
            actor.tell(PenLost(Fenced(run_stream(run_id))))

    async def emptied(self, at_most_s: float) -> None:
        """Return when no run is live, or after that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                while tasks := [task for _, task in self._live.values()]:
                    await asyncio.wait(tasks)

    async def stop(self) -> None:
        """Cut every run off where it stands. Their streams stay as they are, for reconciliation to close."""
        self._supervisor.stopping = True
        tasks = [task for _, task in self._live.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _left(self, run_id: RunId, task: asyncio.Task[None]) -> None:
        self._live.pop(run_id, None)
        if not task.cancelled():
            self._presence.leave(run_id)
