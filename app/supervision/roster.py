"""The live runs of this host: one supervised task each."""

import asyncio
from collections.abc import Iterator

from app.metrics import Metrics
from app.supervision.run_actor import RunActor
from app.supervision.supervisor import Supervisor
from domain.ids import RunId


class Roster:
    """Whoever is in it is running here; a run leaves when its actor has ended and its end is recorded."""

    def __init__(self, supervisor: Supervisor, metrics: Metrics) -> None:
        self._supervisor = supervisor
        metrics.runs_live.set_function(self.__len__)
        self._live: dict[RunId, tuple[RunActor, asyncio.Task[None]]] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[RunActor]:
        return iter([actor for actor, _ in self._live.values()])

    def find(self, run_id: RunId) -> RunActor | None:
        entry = self._live.get(run_id)
        return entry[0] if entry else None

    def start(self, actor: RunActor) -> None:
        """Give the run its task. It leaves the roster by itself."""
        task = asyncio.create_task(self._supervisor.supervise(actor), name=f"run {actor.run_id}")
        self._live[actor.run_id] = (actor, task)
        task.add_done_callback(lambda _: self._live.pop(actor.run_id, None))

    async def stop(self) -> None:
        """Cut every run off where it stands. Their streams stay as they are, for reconciliation to close."""
        tasks = [task for _, task in self._live.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
