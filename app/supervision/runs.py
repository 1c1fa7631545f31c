"""Runs as the log has them: load one, or carry out a command on one that no actor here owns."""

from typing import cast

from app.store.event_log import Change, EventLog, VersionConflict
from domain.commands import RunCommand
from domain.decide import decide
from domain.errors import NotFound
from domain.events import Recorded, RunCreated, RunEvent
from domain.evolve import fold
from domain.ids import DEFAULT_TENANT, RunId, Version, run_stream
from domain.run import Run


class RunNotFound(NotFound):
    """No run of this tenant has this id."""

    code = "run_not_found"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"there is no run {run_id}")


class Runs:
    """Reads and moves runs by their events, whoever owns them."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def history(self, run_id: RunId, tenant: str | None = None) -> list[Recorded[RunEvent]]:
        """Every event of a run, oldest first. Raise RunNotFound, also for another tenant's run (HTTP-2)."""
        recorded = cast(list[Recorded[RunEvent]], await self._log.read_stream(run_stream(run_id)))
        if not recorded or not isinstance(recorded[0].event, RunCreated):
            raise RunNotFound(run_id)
        if tenant is not None and recorded[0].tenant != tenant:
            raise RunNotFound(run_id)
        return recorded

    async def load(self, run_id: RunId, tenant: str | None = None) -> Run:
        return fold(run_id, (r.event for r in await self.history(run_id, tenant)))

    async def execute(self, run_id: RunId, command: RunCommand) -> None:
        """Decide on the newest state and append; on a conflict, read again and decide again."""
        while True:
            run = await self.load(run_id)
            events = decide(run, command)
            if not events:
                return
            change = Change(
                stream_id=run_stream(run_id),
                expected=Version(run.version),
                tenant=run.created.tenant if run.created else DEFAULT_TENANT,
                events=tuple(events),
            )
            try:
                await self._log.append(change)
            except VersionConflict:
                continue
            return
