"""The input of a response: a text, or items of which only messages and calls of the past are taken."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from app.http.openai.content import Content, text_of
from app.http.openai.refusing import wrong
from domain.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage

Role = Literal["system", "developer", "user", "assistant"]


class InputItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item. An item of an earlier response may be sent back as it came; other fields are read over."""

    type: str = "message"
    role: Role | None = None
    content: Content | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: Content | None = None


Input = str | tuple[InputItem, ...]


def messages_of(given: Input, where: str) -> tuple[Message, ...]:
    """Raise BadBody for an item that is not taken, or lacks something."""
    if isinstance(given, str):
        return (UserMessage(content=given),)
    messages: list[Message] = []
    for number, item in enumerate(given):
        _add(messages, item, f"{where}[{number}]")
    return tuple(messages)


def _add(messages: list[Message], item: InputItem, where: str) -> None:
    match item.type:
        case "message":
            messages.append(_message(item, where))
        case "function_call":
            _add_call(messages, item, where)
        case "function_call_output":
            call_id, output = _needed(item.call_id, f"{where}.call_id"), item.output
            text = text_of("" if output is None else output, f"{where}.output")
            messages.append(ToolMessage(tool_call_id=call_id, content=text))
        case "reasoning":
            pass  # only its writer can read it, and none of ours wrote it
        case _:
            raise wrong(f"{where}.type", f"items of type {item.type!r} are not supported")


def _message(item: InputItem, where: str) -> Message:
    if item.content is None:
        raise wrong(f"{where}.content", "is missing")
    text = text_of(item.content, f"{where}.content")
    match item.role:
        case None:
            raise wrong(f"{where}.role", "is missing")
        case "user":
            return UserMessage(content=text)
        case "assistant":
            return AssistantMessage(content=text)
        case _:
            return SystemMessage(content=text)


def _add_call(messages: list[Message], item: InputItem, where: str) -> None:
    """A call belongs to the reply that it follows, together with that reply's other calls."""
    call = ToolCall(
        id=_needed(item.call_id, f"{where}.call_id"),
        name=_needed(item.name, f"{where}.name"),
        arguments=item.arguments or "",
    )
    reply = messages[-1] if messages else None
    if isinstance(reply, AssistantMessage):
        messages[-1] = AssistantMessage(content=reply.content, tool_calls=(*reply.tool_calls, call))
    else:
        messages.append(AssistantMessage(tool_calls=(call,)))


def _needed(value: str | None, where: str) -> str:
    if not value:
        raise wrong(where, "is missing")
    return value


def are_said(messages: Iterable[Message]) -> bool:
    """Whether there is anything for a model to read."""
    return any(message.content.strip() or isinstance(message, AssistantMessage) for message in messages)
