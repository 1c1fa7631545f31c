"""Whose turn it is in a session: its runs go one after the other, on whichever hosts they are.

The session's own stream says who has begun and who waits, so beginning is one append, compared and set. Who
has begun holds the session until its run has ended, whoever ended it: a host that dies holds nothing up for
longer than it takes to close its runs.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from app.settings import SessionsSettings
from app.store.event_log import Change, EventLog
from app.supervision.sessions import load_session
from domain import events as e
from domain.continuation import ORPHANED
from domain.errors import Conflict
from domain.failure import ErrorClass, RunError
from domain.ids import RunId, Version, run_stream, session_stream
from domain.session import Session, Turn

OVERDUE = RunError(
    message="the run's time was over long ago and nothing had ended it; the next run of its session did",
    type="deadline_exceeded",
    error_class=ErrorClass.TIMEOUT,
)

CONTINUED_WITHIN_S = 30.0
"""How long those that wait leave an orphan's place to the run that may continue it, one of thousands too."""


class SessionBusy(Conflict):
    """Another run of the session is not over. Send the message again when it is."""

    code = "session_busy"

    def __init__(self, session_id: str, run_id: RunId) -> None:
        super().__init__(f"session {session_id!r} is busy with run {run_id}")
        self.run_id = run_id


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a run's opening append says to its session, and whether the run begins with it or waits."""

    session: Session = Session()
    """As it was read, with what goes alongside."""
    changes: tuple[Change, ...] = ()
    begins: bool = True
    says_so: bool = False
    """Whether the beginning is among the changes."""

    @property
    def held(self) -> Session:
        """The session as the run has it once the append is there."""
        if not self.says_so:
            return self.session
        return msgspec.structs.replace(self.session, version=Version(self.session.version + 1))


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """A run that comes first. Look again when its stream goes on after `seen`, or after `at_most_s`."""

    run_id: RunId
    seen: int
    at_most_s: float


class SessionTurns:
    """`now` is the database's clock; `close` ends a run that nothing works on any more.

    `limit_s`: so long after its beginning no run is live. `continues`: whether orphans are continued.
    """

    def __init__(
        self,
        log: EventLog,
        settings: SessionsSettings,
        *,
        now: Callable[[], Awaitable[datetime]],
        close: Callable[[RunId, RunError], Awaitable[None]],
        limit_s: float,
        continues: bool,
    ) -> None:
        self._log = log
        self._concurrency = settings.concurrency
        self._now = now
        self._close = close
        self._limit_s = limit_s
        self._continues = continues

    async def claim(
        self,
        tenant: str,
        session_id: str | None,
        run_id: RunId,
        *,
        in_place_of: RunId | None = None,
        alongside: tuple[Change, ...] = (),
        accepted: bool = False,
    ) -> Claim:
        """Read the session, and say what becomes of a run that wants to begin.

        Raise SessionBusy if it has to wait and may not, unless it was `accepted` before.

        A change of the session's own stream among those `alongside` goes before what is said here.
        """
        if session_id is None:
            return Claim(changes=alongside)
        stream = session_stream(tenant, session_id)
        own = next((change for change in alongside if change.stream_id == stream), None)
        session = _opened_by(own, await load_session(self._log, tenant, session_id))
        if self._concurrency == "parallel":
            return Claim(session=session, changes=alongside)
        if session.is_waiting(run_id):
            return Claim(session=session, changes=alongside, begins=False)
        blocker = await self.blocker(session, run_id, in_place_of)
        others = tuple(change for change in alongside if change is not own)
        if blocker is None:
            said = self.begun(tenant, session_id, session.version, run_id)
        elif self._concurrency == "reject" and not accepted:
            raise SessionBusy(session_id, blocker.run_id)
        else:
            said = self._queued(tenant, session_id, session.version, run_id, in_place_of)
        begins = blocker is None
        return Claim(session=session, changes=(*others, _after(own, said)), begins=begins, says_so=begins)

    async def blocker(self, session: Session, run_id: RunId, in_place_of: RunId | None) -> Blocker | None:
        """The first of the runs before this one that is not over."""
        for turn in session.before(run_id, in_place_of):
            if turn.run_id != in_place_of and (blocker := await self._blocking(turn)):
                return blocker
        return None

    def begun(self, tenant: str, session_id: str, version: Version, run_id: RunId) -> Change:
        """The run has the session from here on."""
        turn = e.SessionTurnBegun(run_id=run_id, limit_s=self._limit_s)
        return Change(
            stream_id=session_stream(tenant, session_id), expected=version, tenant=tenant, events=(turn,)
        )

    def _queued(
        self, tenant: str, session_id: str, version: Version, run_id: RunId, in_place_of: RunId | None
    ) -> Change:
        turn = e.SessionTurnQueued(run_id=run_id, limit_s=self._limit_s, in_place_of=in_place_of)
        return Change(
            stream_id=session_stream(tenant, session_id), expected=version, tenant=tenant, events=(turn,)
        )

    async def _blocking(self, turn: Turn) -> Blocker | None:
        """Whether this turn is still to be waited for. A run whose time is long over is ended here."""
        last = await self._log.read_last(run_stream(turn.run_id))
        if last is None or isinstance(last.event, e.AfterEnd):
            return None
        now = await self._now()
        if isinstance(last.event, e.RunEnd):
            left_s = self._left_to_a_continuation_s(last, now)
        elif (left_s := (turn.until - now).total_seconds()) <= 0:
            await self._close(turn.run_id, OVERDUE)
        return None if left_s <= 0 else Blocker(run_id=turn.run_id, seen=last.sequence, at_most_s=left_s)

    def _left_to_a_continuation_s(self, end: e.Recorded[e.Event], now: datetime) -> float:
        event = end.event
        if not (self._continues and isinstance(event, e.RunFailed) and event.error_type == ORPHANED):
            return 0.0
        return CONTINUED_WITHIN_S - (now - end.at).total_seconds()


def _opened_by(own: Change | None, session: Session) -> Session:
    """The session as it will be when what goes alongside is recorded."""
    if own is None:
        return session
    opening = [event.messages for event in own.events if isinstance(event, e.SessionOpened)]
    messages = (*session.messages, *(message for messages in opening for message in messages))
    known = [event.summary for event in own.events if isinstance(event, e.SessionSummarised)]
    return msgspec.structs.replace(
        session,
        messages=messages,
        summary=known[-1] if known else session.summary,
        version=Version(own.expected + len(own.events)),
    )


def _after(own: Change | None, said: Change) -> Change:
    return said if own is None else msgspec.structs.replace(own, events=(*own.events, *said.events))
