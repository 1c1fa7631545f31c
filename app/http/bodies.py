"""What clients send: request bodies and query parameters."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.http.errors import BadBody, BadQuery, FieldError
from app.jobs.specs import queue_spec
from app.keys.key import NAME_LENGTH, Scope
from app.settings import AsyncRunSettings
from app.supervision.run_service import StartRequest
from domain.agent import Name
from domain.messages import AssistantMessage, Message, SystemMessage, UserMessage
from domain.queueing import DEFAULT_LANE, Attempts, Priority, QueueSpec
from domain.run import RunStatus
from projections.idempotency_record import KeyState
from projections.read.runs import RunFilter

_MESSAGE_OF_ROLE: dict[str, Callable[..., Message]] = {
    "system": SystemMessage,
    "user": UserMessage,
    "assistant": AssistantMessage,
}

_TEN_YEARS_S = 3653 * 86400


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request body or a query. A misspelt name is refused, not ignored."""


class InputMessage(Body, frozen=True, kw_only=True):
    role: Literal["system", "user", "assistant"]
    content: str

    def plain(self) -> Message:
        return _MESSAGE_OF_ROLE[self.role](content=self.content)


class QueueBody(Body, frozen=True, kw_only=True):
    """How a run is queued. Lanes are those of the settings."""

    lane: Name = DEFAULT_LANE
    priority: Priority = 0
    """Within the lane the higher one goes first; of equals, the older."""
    max_attempts: Attempts | UnsetType = UNSET
    """How many workers may have the job, one after the other."""

    def spec(self, settings: AsyncRunSettings) -> QueueSpec:
        """Raise UnknownLane."""
        attempts = self.max_attempts or None
        return queue_spec(settings, lane=self.lane, priority=self.priority, max_attempts=attempts)


class Asked(Body, frozen=True, kw_only=True):
    """What a run is asked: one `message`, or several `messages` of which the last is the user's."""

    also: ClassVar[dict[str, Any]] = {"oneOf": [{"required": ["message"]}, {"required": ["messages"]}]}
    """What its JSON schema says besides."""

    message: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    messages: Annotated[tuple[InputMessage, ...], Meta(min_length=1)] | UnsetType = UNSET
    session_id: Annotated[str, Meta(min_length=1, max_length=200)] | UnsetType = UNSET
    """Printable text. Runs of one session continue one conversation."""
    parameters: dict[str, Any] = {}

    def session(self, at: str = "") -> str | None:
        """Raise BadBody. `at` is where this stands in the body."""
        if self.session_id and not self.session_id.isprintable():
            raise _wrong(f"{at}session_id", "must be printable")
        return self.session_id or None

    def asked(self, at: str = "") -> tuple[Message, ...]:
        """Raise BadBody for what types cannot say."""
        match self.message, self.messages:
            case str(message), UnsetType():
                field, messages = "message", (InputMessage(role="user", content=message),)
            case UnsetType(), tuple(messages):
                field = "messages"
            case _:
                raise _wrong(f"{at}message", "give exactly one of message and messages")
        if messages[-1].role != "user":
            raise _wrong(f"{at}{field}", "the last message must be the user's")
        if not messages[-1].content.strip():
            raise _wrong(f"{at}{field}", "must not be empty")
        return tuple(message.plain() for message in messages)


class StartRunBody(Asked, frozen=True, kw_only=True):
    """A submission. `queue` goes with `Prefer: respond-async` only."""

    queue: QueueBody | UnsetType = UNSET

    def request(self, tenant: str, agent: str, *, streaming: bool) -> StartRequest:
        """Raise BadBody: this run is begun at once."""
        if self.queue is not UNSET:
            raise _wrong("queue", "goes with Prefer: respond-async only")
        return self._request(tenant, agent, streaming=streaming)

    def queued(self, tenant: str, agent: str, settings: AsyncRunSettings) -> StartRequest:
        """The same for a run that is left to a worker. Raise BadBody or UnknownLane."""
        queue = (self.queue or QueueBody()).spec(settings)
        return msgspec.structs.replace(self._request(tenant, agent, streaming=False), queue=queue)

    def _request(self, tenant: str, agent: str, *, streaming: bool) -> StartRequest:
        session_id = self.session()
        return StartRequest(
            tenant=tenant,
            agent=agent,
            messages=self.asked(),
            session_id=session_id,
            parameters=self.parameters,
            streaming=streaming,
        )


class CancelBody(Body, frozen=True, kw_only=True):
    reason: Annotated[str, Meta(max_length=1000)] = ""
    """Recorded with the run."""


class CancelQuery(Body, frozen=True, kw_only=True):
    wait: bool = False
    """Answer when the run has ended, with what the cancel came upon. At most `cancellation.wait_timeout`."""


class CreateKeyBody(Body, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH)]
    """What the key is for, in the words of whoever makes it."""
    scopes: Annotated[frozenset[Scope], Meta(min_length=1)] = frozenset((Scope.READ, Scope.RUN))
    expires_in: Annotated[int, Meta(gt=0, le=_TEN_YEARS_S)] | UnsetType = UNSET
    """Seconds from now; left out, it never expires."""

    def printable_name(self) -> str:
        """Raise BadBody."""
        if not self.name.isprintable():
            raise _wrong("name", "must be printable")
        return self.name


class CompleteKeyBody(Body, frozen=True, kw_only=True):
    answer: Any
    """What whoever repeats the request is to get, as JSON."""
    status: Annotated[int, Meta(ge=200, le=299)] = 200


Moment = Annotated[datetime, Meta(tz=True)]
"""A point in time as RFC 3339 writes it, with its offset from UTC; or in seconds since 1970."""


class RunsQuery(Body, frozen=True, kw_only=True):
    """Filters, which must all hold, and the part of the list. `take` is clamped to 1..200 (HTTP-2)."""

    status: RunStatus | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    model_id: str | UnsetType = UNSET
    since: Moment | UnsetType = UNSET
    """Created then or later."""
    until: Moment | UnsetType = UNSET
    """Created before then."""
    roots: bool = False
    """Only runs that no other run has started."""
    skip: int = 0
    take: int = 50
    with_total: bool = False

    @property
    def filter(self) -> RunFilter:
        """Raise BadQuery for a time that no calendar has."""
        given = {name: getattr(self, name) for name in RunFilter.__struct_fields__}
        given |= {name: in_utc(name, given[name]) for name in ("since", "until")}
        return RunFilter(**{name: value for name, value in given.items() if value is not UNSET})


class EventsQuery(Body, frozen=True, kw_only=True):
    after: str | UnsetType = UNSET
    """The sequence of the last event that the client has; what follows it is sent."""
    take: int | UnsetType = UNSET
    """In the JSON answer: at most so many events, clamped to 1..200. Left out: all of them, page by page."""


class ListQuery(Body, frozen=True, kw_only=True):
    """The part of a list that is wanted. `take` is clamped to 1..200 (HTTP-2)."""

    skip: int = 0
    take: int = 50


class TreeQuery(Body, frozen=True, kw_only=True):
    """The part of a tree that is wanted. `take` is clamped to 1..200 (HTTP-2)."""

    skip: int = 0
    take: int = 200


class KeysQuery(ListQuery, frozen=True, kw_only=True):
    """The same, of idempotency keys; without a state, of all."""

    state: KeyState | UnsetType = UNSET


class StatsQuery(Body, frozen=True, kw_only=True):
    """A span of UTC days: from `since` on and before `until`. Either may be left open."""

    since: date | UnsetType = UNSET
    until: date | UnsetType = UNSET


class NoQuery(Body, frozen=True, kw_only=True):
    """The route takes no query parameters."""


def in_utc(name: str, moment: datetime | UnsetType) -> datetime | UnsetType:
    try:
        return UNSET if moment is UNSET else moment.astimezone(UTC)
    except OverflowError:
        raise BadQuery(f"{name} is out of range", FieldError(field=name, message="out of range")) from None


def _wrong(field: str, what: str) -> BadBody:
    return BadBody(f"{field}: {what}", FieldError(field=f"$.{field}", message=what))
