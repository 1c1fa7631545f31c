"""A run that waits for its turn in a session: accepted, visible as queued, and begun when it may be."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import aclosing
from time import monotonic
from typing import cast

import msgspec

from app.db.errors import StoreUnavailable
from app.store.event_log import Change, EventLog, VersionConflict
from app.store.stream_writer import Fenced
from app.supervision.live_run import LiveRun
from app.supervision.session_turns import Blocker, SessionTurns
from domain import events as e
from domain.agent import AgentDefinition
from domain.commands import StartRun
from domain.decide import decide
from domain.ids import StreamId, Version, run_stream, session_stream
from domain.session import evolve


class TurnWait:
    """One run's wait. Nobody writes the run's stream from here meanwhile; its end elsewhere ends the wait."""

    def __init__(
        self, log: EventLog, turns: SessionTurns, live: LiveRun, created: e.RunCreated, patience_s: float
    ) -> None:
        self._log = log
        self._turns = turns
        self._live = live
        self._tenant = created.tenant
        self._session_id = created.session_id or ""
        self._in_place_of = created.continued_from_run_id
        self._patience_s = patience_s

    async def over(self, host: str, definition: AgentDefinition) -> None:
        """Return when the run has begun its turn on this host.

        Raise Fenced if somebody has ended it, StoreUnavailable when the store is away for too long.
        """
        while True:
            await self._nobody_before()
            if await self._begin(
                StartRun(host=host, definition=definition, session_version=self._live.session.version)
            ):
                return

    async def _nobody_before(self) -> None:
        unheard_since: float | None = None
        while True:
            try:
                blocker = await self._look()
                if blocker is None:
                    return
                await self._news(blocker)
                unheard_since = None
            except StoreUnavailable:
                unheard_since = unheard_since or monotonic()
                if monotonic() - unheard_since > self._patience_s:
                    raise
                await asyncio.sleep(random.uniform(0.1, 0.5))  # noqa: S311 - jitter, not a secret

    async def _look(self) -> Blocker | None:
        live = self._live
        for one in await self._log.read_stream(self._session, after=live.session.version):
            live.session = evolve(live.session, cast(e.Recorded[e.SessionEvent], one))
        return await self._turns.blocker(live.session, live.id, self._in_place_of)

    async def _news(self, blocker: Blocker) -> None:
        """Return when there may be something new. Raise Fenced if it is that the waiting run was ended."""
        live = self._live
        tasks = [
            asyncio.create_task(self._moved(run_stream(live.id), live.run.version)),
            asyncio.create_task(self._moved(self._session, live.session.version)),
            asyncio.create_task(self._ended(blocker)),
        ]
        try:
            done, _ = await asyncio.wait(
                tasks, timeout=blocker.at_most_s, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()
            if tasks[0] in done:
                raise Fenced(run_stream(live.id))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _moved(self, stream_id: StreamId, after: int) -> None:
        async with aclosing(self._log.follow(stream_id, after)) as batches:
            await anext(batches)

    async def _ended(self, blocker: Blocker) -> None:
        async with aclosing(self._log.follow(run_stream(blocker.run_id), blocker.seen)) as batches:
            async for batch in batches:
                if any(isinstance(one.event, e.RunEnd | e.AfterEnd) for one in batch):
                    return

    async def _begin(self, start: StartRun) -> bool:
        """Begin the run and its turn in one append; False if somebody else moved the session first."""
        events = decide(self._live.run, start)
        run_change = Change(
            stream_id=run_stream(self._live.id),
            expected=self._live.run.version,
            tenant=self._tenant,
            events=tuple(events),
        )
        turn = self._turns.begun(self._tenant, self._session_id, self._live.session.version, self._live.id)
        appending = asyncio.ensure_future(self._log.append(run_change, turn, patience_s=self._patience_s))
        try:
            await asyncio.shield(appending)
        except VersionConflict as conflict:
            if run_change.stream_id in conflict.stream_ids:
                raise Fenced(run_change.stream_id) from conflict
            return False
        except asyncio.CancelledError:
            # It may be stored all the same, and whoever ends the run must know where its stream is.
            await asyncio.wait([appending])
            if not appending.cancelled() and appending.exception() is None:
                self._begun(events)
            raise
        self._begun(events)
        return True

    def _begun(self, events: Sequence[e.RunEvent]) -> None:
        self._live.begun(events)
        session = self._live.session
        self._live.session = msgspec.structs.replace(session, version=Version(session.version + 1))

    @property
    def _session(self) -> StreamId:
        return session_stream(self._tenant, self._session_id)
