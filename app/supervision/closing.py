"""Ends runs that nothing works on any more, in their owners' place and as those would have (CANCEL-1)."""

from app.store.event_log import Change, EventLog, VersionConflict
from app.supervision.cancels import Cancels
from app.supervision.runs import Runs
from app.supervision.sessions import load_session
from domain.commands import CloseAbandoned
from domain.decide import decide
from domain.events import RunCancelled, RunEvent
from domain.failure import RunError
from domain.ids import DEFAULT_TENANT, RunId, StreamId, Version, run_stream, session_stream
from domain.run import Run, RunStatus
from domain.session import turn_of


class Closing:
    """A cancel that was accepted outlives the host that was to carry it out: its run ends as cancelled."""

    def __init__(self, log: EventLog, cancels: Cancels) -> None:
        self._log = log
        self._cancels = cancels

    async def close(self, run_id: RunId, error: RunError) -> None:
        """End the run, whoever moves it meanwhile. Raise RunAlreadyEnded, RunNotFound, StoreUnavailable."""
        runs = Runs(self._log)
        while True:
            asked = await self._cancels.left_for([run_id])
            run = await runs.load(run_id)
            try:
                await self.append(run, CloseAbandoned(error=error, asked=asked.get(run_id)))
            except VersionConflict:
                continue
            return

    async def append(self, run: Run, close: CloseAbandoned) -> list[RunEvent]:
        """End the run as it was read, and return how. Raise RunAlreadyEnded, StoreUnavailable, or
        VersionConflict if the run was moved meanwhile."""
        events = decide(run, close)
        tenant = run.created.tenant if run.created else DEFAULT_TENANT
        stream = run_stream(run.id)
        change = Change(stream_id=stream, expected=Version(run.version), tenant=tenant, events=tuple(events))
        while True:
            try:
                await self._log.append(change, *await self._turn(run, tenant, events))
            except VersionConflict as conflict:
                if stream in conflict.stream_ids or not await self._is_where(stream, run.version):
                    raise
                continue  # another run of the session ended first; this turn follows it
            return events

    async def _turn(self, run: Run, tenant: str, events: list[RunEvent]) -> tuple[Change, ...]:
        """A turn that was cancelled is part of its session; one that failed, or never began, is not."""
        session_id = run.session_of_turn
        cancelled = isinstance(events[-1], RunCancelled) and run.status is RunStatus.RUNNING
        if session_id is None or not cancelled:
            return ()
        session = await load_session(self._log, tenant, session_id)
        return (
            Change(
                stream_id=session_stream(tenant, session_id),
                expected=session.version,
                tenant=tenant,
                events=(turn_of(run),),
            ),
        )

    async def _is_where(self, stream: StreamId, version: int) -> bool:
        last = await self._log.read_last(stream)
        return (last.sequence if last else 0) == version
