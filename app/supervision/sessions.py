"""Sessions as the log has them: opened, read, and gone on from the end of a run."""

from typing import cast
from uuid import uuid4

import msgspec

from app.store.event_log import Change, EventLog
from domain.compaction import for_the_session
from domain.errors import Conflict
from domain.events import Recorded, SessionEvent, SessionOpened, SessionSummarised
from domain.ids import Version, session_stream
from domain.run import Run
from domain.session import Session, fold, history_after

_THREAD = "thread_"
"""Sessions of runs that go on from one another. Nobody else adds to them."""


class SessionMoved(Conflict):
    """Another run has been there since it was looked at. Look again, decide again."""

    code = "session_moved"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} has moved on")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run takes its history from: a session as far as `version`, or one that is opened with it."""

    session_id: str
    version: Version | None = None
    alongside: tuple[Change, ...] = ()


async def load_session(log: EventLog, tenant: str, session_id: str | None) -> Session:
    """The conversation so far; empty for a new session and for none."""
    return Session() if session_id is None else fold(await read_session(log, tenant, session_id))


async def read_session(
    log: EventLog, tenant: str, session_id: str, limit: int | None = None
) -> list[Recorded[SessionEvent]]:
    """The session's events, oldest first; none for one that nobody has used."""
    recorded = await log.read_stream(session_stream(tenant, session_id), limit=limit)
    return cast(list[Recorded[SessionEvent]], recorded)


def opening(tenant: str, opened: SessionOpened, *known: SessionSummarised) -> Change:
    """It conflicts if there is such a session. `known`: what of its history is summarised already."""
    stream_id = session_stream(tenant, opened.session_id)
    return Change(stream_id=stream_id, expected=Version(0), tenant=tenant, events=(opened, *known))


async def place_after(log: EventLog, tenant: str, run: Run, *, alone: bool = False) -> Place:
    """Where to go on from the end of a run, with just what that run knew.

    Runs that go on from one another share a session for as long as they make one line. Where two go on from
    the same run, the second gets a session of its own, which begins with a copy of the history; with `alone`,
    the first does too.
    """
    session_id = run.created.session_id if run.created else None
    events = [] if session_id is None else await read_session(log, tenant, session_id)
    history = history_after(run, events)
    if history is None and session_id is not None and session_id.startswith(_THREAD) and not alone:
        return Place(session_id=session_id, version=Version(len(events)))
    session = fold(events)
    messages = session.messages if history is None else history
    opened = SessionOpened(session_id=f"{_THREAD}{uuid4().hex}", messages=messages, continues_run_id=run.id)
    summaries = [one for one in (session.summary, run.beside.context.summary) if one is not None]
    known = for_the_session(run.id, summaries, Session(messages=messages), ())
    return Place(session_id=opened.session_id, alongside=(opening(tenant, opened, *known),))
