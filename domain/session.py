"""A session: the conversation that several runs continue."""

from collections.abc import Iterable

import msgspec

from domain.events import SessionEvent, SessionTurnAdded
from domain.ids import Version
from domain.messages import Message, ToolMessage, with_result
from domain.run import Run

INTERRUPTED = "The call was interrupted before it had a result. Its effect is unknown."


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of every finished turn, oldest first."""

    version: Version = Version(0)
    messages: tuple[Message, ...] = ()


def evolve(session: Session, event: SessionEvent) -> Session:
    """Fold what the session begins with, or one more turn, in."""
    return Session(version=Version(session.version + 1), messages=(*session.messages, *event.messages))


def fold(events: Iterable[SessionEvent]) -> Session:
    session = Session()
    for event in events:
        session = evolve(session, event)
    return session


def turn_of(run: Run) -> SessionTurnAdded:
    """The run's turn as history. Calls without a result get a synthetic one: every provider asks for it."""
    messages = run.transcript
    for open_call in run.open_calls:
        missing = ToolMessage(tool_call_id=open_call.call.id, content=INTERRUPTED, failed=True)
        messages = with_result(messages, missing)
    return SessionTurnAdded(run_id=run.id, messages=messages)
