"""Conversations: sessions that are begun by name, and whose messages can be read."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal
from uuid import UUID

import msgspec
from aiohttp import web

from app.http.bodies import Body, NoQuery
from app.http.decoding import optional_body_of, query_of
from app.http.errors import BadQuery, FieldError
from app.http.openai.asked import Metadata
from app.http.openai.names import message_id, new_conversation_id
from app.http.openai.refusals import NoSuchConversation
from app.http.openai.refusing import wrong
from app.http.openai.response_items import InputItem, messages_of
from app.http.openai.response_object import OutputText
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from app.store.event_log import EventLog
from app.supervision.opening import ADMISSION_PATIENCE_S
from app.supervision.sessions import opening, read_session
from domain.events import Recorded, SessionEvent, SessionOpened
from domain.messages import AssistantMessage, Message, SystemMessage, UserMessage, flaw_in
from domain.session import fold

_MOST_ITEMS = 100


class ConversationRequest(Body, frozen=True, kw_only=True):
    items: tuple[InputItem, ...] | None = None
    """What was said before it begins."""
    metadata: Metadata | None = None


class ItemsQuery(Body, frozen=True, kw_only=True):
    limit: int = 20
    """Clamped to 1..100."""
    order: Literal["asc", "desc"] = "desc"
    after: str | msgspec.UnsetType = msgspec.UNSET
    """The id of the last item that the client has."""
    include: tuple[str, ...] = msgspec.field(default=(), name="include[]")
    """Taken, and changes nothing."""


class ConversationObject(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: dict[str, str]


class InputText(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="input_text"):
    text: str


class ConversationItem(msgspec.Struct, frozen=True, kw_only=True):
    """A message. What tools were asked and what they answered stays with the runs."""

    type: Literal["message"] = "message"
    id: str
    role: Literal["system", "user", "assistant"]
    status: Literal["completed"] = "completed"
    content: tuple[InputText | OutputText, ...]


class ConversationItemList(msgspec.Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: tuple[ConversationItem, ...]
    first_id: str | None
    last_id: str | None
    has_more: bool


async def create_conversation(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    body = await optional_body_of(request, ConversationRequest)
    messages = messages_of(body.items or (), "items")
    if flaw := flaw_in(messages):
        raise wrong("items", flaw)
    log, tenant = services_of(request).log, tenant_of(request)
    opened = SessionOpened(session_id=new_conversation_id(), metadata=body.metadata or {}, messages=messages)
    await log.append(opening(tenant, opened), patience_s=ADMISSION_PATIENCE_S)
    return reply(await _conversation(log, tenant, opened.session_id))


async def get_conversation(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    return reply(await _conversation(services_of(request).log, tenant_of(request), request.match_info["id"]))


async def list_items(request: web.Request) -> web.Response:
    query, session_id = query_of(request, ItemsQuery), request.match_info["id"]
    session = await session_named(services_of(request).log, tenant_of(request), session_id)
    items = list(_items(session[0].stream_id, fold(session).messages))
    if query.order == "desc":
        items.reverse()
    if query.after is not msgspec.UNSET:
        items = items[_place_of(items, query.after) + 1 :]
    limit = min(max(query.limit, 1), _MOST_ITEMS)
    page = tuple(items[:limit])
    return reply(
        ConversationItemList(
            data=page,
            first_id=page[0].id if page else None,
            last_id=page[-1].id if page else None,
            has_more=len(items) > limit,
        )
    )


async def session_named(
    log: EventLog, tenant: str, session_id: str, limit: int | None = None
) -> list[Recorded[SessionEvent]]:
    """A conversation's events. Any session that has one is a conversation. Raise NoSuchConversation."""
    session = await read_session(log, tenant, session_id, limit)
    if not session:
        raise NoSuchConversation(session_id)
    return session


async def _conversation(log: EventLog, tenant: str, session_id: str) -> ConversationObject:
    [first] = await session_named(log, tenant, session_id, limit=1)
    return ConversationObject(
        id=session_id,
        created_at=int(first.at.timestamp()),
        metadata=first.event.metadata if isinstance(first.event, SessionOpened) else {},
    )


def _items(stream_id: UUID, messages: Iterable[Message]) -> Iterator[ConversationItem]:
    """An item's id is made of its place, which is its own for ever: a conversation only grows."""
    for place, message in enumerate(messages):
        item_id = message_id(stream_id.hex, place)
        match message:
            case UserMessage(content=text) | SystemMessage(content=text):
                role: Literal["user", "system"] = "user" if isinstance(message, UserMessage) else "system"
                yield ConversationItem(id=item_id, role=role, content=(InputText(text=text),))
            case AssistantMessage(content=text) if text:
                yield ConversationItem(id=item_id, role="assistant", content=(OutputText(text=text),))
            case _:
                pass  # a tool's doing


def _place_of(items: Sequence[ConversationItem], item_id: str) -> int:
    for place, item in enumerate(items):
        if item.id == item_id:
            return place
    raise BadQuery(f"There is no item {item_id!r}.", FieldError(field="after", message="no such item"))
