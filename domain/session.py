"""A session: the conversation that several runs continue, one after the other."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from domain import events as e
from domain.events.side import Summary
from domain.ids import RunId, Version
from domain.messages import Message, ToolMessage, with_result
from domain.run import Run

_LONGEST_S = 366 * 86400.0

NOT_APPROVED = "The call was not made: nobody has approved of it."
INTERRUPTED = "The call was interrupted before it had a result. Its effect is unknown."


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has the conversation to itself, or waits for it. Whether it is over, its own stream says."""

    run_id: RunId
    until: datetime
    """Nothing works on the run any more after that, by the database's clock."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of every finished turn, oldest first, and whose turn it is."""

    version: Version = Version(0)
    messages: tuple[Message, ...] = ()
    summary: Summary | None = None
    """What one of the runs had its beginning summarised to, for runs that find it too long (CHAIN-13)."""
    holder: Turn | None = None
    """The run that began its turn last. Unless it has ended, the conversation is its own."""
    waiting: tuple[Turn, ...] = ()
    """Runs that have not begun their turn, in the order in which they may. Some may have ended since."""

    def before(self, run_id: RunId, in_place_of: RunId | None = None) -> tuple[Turn, ...]:
        """The turns that come before this run's, first the one that has begun.

        A run that is not waiting yet is behind all that are, or has the place of the one that it continues.
        """
        ahead = self.waiting[: self.place_of(run_id, in_place_of)]
        begun = () if self.holder is None or self.holder.run_id in (run_id, in_place_of) else (self.holder,)
        return (*begun, *ahead)

    def is_waiting(self, run_id: RunId) -> bool:
        return any(turn.run_id == run_id for turn in self.waiting)

    def place_of(self, run_id: RunId, in_place_of: RunId | None) -> int:
        for wanted in (run_id, in_place_of):
            for place, turn in enumerate(self.waiting):
                if turn.run_id == wanted:
                    return place
        return len(self.waiting) if in_place_of is None else 0


def evolve(session: Session, recorded: e.Recorded[e.SessionEvent]) -> Session:
    """Fold one fact in."""
    event = recorded.event
    after = msgspec.structs.replace(session, version=Version(session.version + 1))
    match event:
        case e.SessionOpened(messages=messages):
            return msgspec.structs.replace(after, messages=(*session.messages, *messages))
        case e.SessionTurnQueued(in_place_of=in_place_of):
            waiting = _with_turn(session, _turn(event, recorded.at), in_place_of)
            return msgspec.structs.replace(after, waiting=waiting)
        case e.SessionTurnBegun(run_id=run_id):
            waiting = _behind(session.waiting, run_id)
            return msgspec.structs.replace(after, holder=_turn(event, recorded.at), waiting=waiting)
        case e.SessionTurnAdded(run_id=run_id, messages=messages):
            over = session.holder is not None and session.holder.run_id == run_id
            holder = None if over else session.holder
            return msgspec.structs.replace(after, messages=(*session.messages, *messages), holder=holder)
        case e.SessionSummarised(summary=summary):
            return msgspec.structs.replace(after, summary=summary)
        case _:
            assert_never(event)


def fold(recorded: Iterable[e.Recorded[e.SessionEvent]]) -> Session:
    session = Session()
    for one in recorded:
        session = evolve(session, one)
    return session


def history_after(run: Run, session: Sequence[e.Recorded[e.SessionEvent]]) -> tuple[Message, ...] | None:
    """What one knows who goes on from the end of this run; None where its whole session is just that.

    A run knows what it had read when it began, and its own turn, but not what others have added meanwhile
    or later, or are about to add.
    """
    now = fold(session)
    later = [one.event for one in session[run.session_version :] if isinstance(one.event, e.SessionTurnAdded)]
    is_last = [turn.run_id for turn in later] == [run.id]
    if is_last and now.holder is None and not now.waiting:
        return None
    return (*fold(session[: run.session_version]).messages, *turn_of(run).messages)


def turn_of(run: Run) -> e.SessionTurnAdded:
    """The run's turn as history. Calls without a result get a synthetic one: every provider asks for it."""
    messages = run.transcript
    content = NOT_APPROVED if run.status.awaits else INTERRUPTED
    for open_call in run.open_calls:
        missing = ToolMessage(tool_call_id=open_call.call.id, content=content, failed=True)
        messages = with_result(messages, missing)
    return e.SessionTurnAdded(run_id=run.id, messages=messages)


def _with_turn(session: Session, turn: Turn, in_place_of: RunId | None) -> tuple[Turn, ...]:
    place = session.place_of(turn.run_id, in_place_of)
    kept = [one for one in session.waiting[place:] if one.run_id not in (turn.run_id, in_place_of)]
    return (*session.waiting[:place], turn, *kept)


def _behind(waiting: tuple[Turn, ...], run_id: RunId) -> tuple[Turn, ...]:
    """Who still waits when this run has begun. Those that were before it had ended, or it could not have."""
    for place, turn in enumerate(waiting):
        if turn.run_id == run_id:
            return waiting[place + 1 :]
    return waiting


def _turn(event: e.SessionTurnQueued | e.SessionTurnBegun, at: datetime) -> Turn:
    limit_s = min(max(0.0, event.limit_s), _LONGEST_S)
    return Turn(run_id=event.run_id, until=at + timedelta(seconds=limit_s))
