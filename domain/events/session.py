"""Conversations, and whose turn it is in them."""

from domain.event import Event
from domain.ids import RunId
from domain.messages import Message


class SessionOpened(Event, frozen=True, kw_only=True, tag="session.opened.v1"):
    """A conversation was begun before its first turn: by itself, or to go on from the end of a run.

    `messages` are the history that it begins with.
    """

    session_id: str
    metadata: dict[str, str] = {}
    messages: tuple[Message, ...] = ()
    continues_run_id: RunId | None = None


class SessionTurnQueued(Event, frozen=True, kw_only=True, tag="session.turn-queued.v1"):
    """A run waits for the runs of its conversation that were there before it.

    `in_place_of`: it continues that one and has its place. `limit_s` after this was recorded, nothing works
    on the run any more, whatever its own stream says.
    """

    run_id: RunId
    limit_s: float
    in_place_of: RunId | None = None


class SessionTurnBegun(Event, frozen=True, kw_only=True, tag="session.turn-begun.v1"):
    """The conversation is this run's alone until the run has ended, but for no longer than `limit_s`."""

    run_id: RunId
    limit_s: float


class SessionTurnAdded(Event, frozen=True, kw_only=True, tag="session.turn-added.v1"):
    """A run's turn became part of its conversation, in the same append as the run's end."""

    run_id: RunId
    messages: tuple[Message, ...]
