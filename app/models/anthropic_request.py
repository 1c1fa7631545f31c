"""A request in the words of Anthropic's Messages."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from app.models.answer_schema import in_words, narrowed
from app.models.kept_blocks import kept
from app.models.port import ModelRequest, ToolSpec
from app.models.transcript import arguments_object, with_wire_ids
from domain.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

_CALL_IDS = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_OPENING = "(The conversation goes on.)"

Turn = tuple[str, list[Any]]


def body_of(provider: str, request: ModelRequest, *, stream: bool, max_tokens: int) -> dict[str, Any]:
    """The request's body. There is no field for a seed."""
    body: dict[str, Any] = {
        "max_tokens": max_tokens,
        **request.provider_settings,
        "model": request.model,
        "stream": stream,
        "messages": [{"role": role, "content": content} for role, content in _turns(provider, request)],
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    schema = None if request.response_schema is None else narrowed(request.response_schema)
    if schema is not None:
        answer = {"type": "json_schema", "schema": schema}
        body["output_config"] = {**(body.get("output_config") or {}), "format": answer}
    options = request.options
    for field, value in (
        ("system", _instructions(request, told_schema=schema is not None) or None),
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("max_tokens", options.max_output_tokens),
        ("stop_sequences", options.stop or None),
    ):
        if value is not None:
            body[field] = value
    return body


def _instructions(request: ModelRequest, *, told_schema: bool) -> str:
    """Instructions have one place only, outside of the conversation. A schema may have to be one of them."""
    told = [message.content for message in request.messages if isinstance(message, SystemMessage)]
    if request.response_schema is not None and not told_schema:
        told.append(in_words(request.response_schema))
    return "\n\n".join(text for text in (request.instructions, *told) if text.strip())


def _turns(provider: str, request: ModelRequest) -> list[Turn]:
    """The conversation as this wire insists on it: the user first, results in the turn after their calls."""
    turns: list[Turn] = []
    for role, content in _contents(provider, request):
        if not content:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(content)
        else:
            turns.append((role, list(content)))
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", [_text(_OPENING)]))
    _trim_prefill(turns[-1])
    return turns


def _contents(provider: str, request: ModelRequest) -> Iterator[tuple[str, Iterable[Any]]]:
    for message in with_wire_ids(request.messages, _CALL_IDS):
        yield _content(message, provider, request.model)


def _content(message: Message, provider: str, model: str) -> tuple[str, list[Any]]:
    match message:
        case SystemMessage():
            return "user", []
        case UserMessage(content=content):
            return "user", [_text(content)] if content.strip() else []
        case AssistantMessage():
            return "assistant", list(kept(message, provider, model) or _said(message))
        case ToolMessage():
            return "user", [_result(message)]
        case _:
            assert_never(message)


def _said(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    if message.content.strip():
        yield _text(message.content)
    for call in message.tool_calls:
        yield {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": arguments_object(call.arguments),
        }


def _result(message: ToolMessage) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.tool_call_id}
    if message.content:
        result["content"] = message.content
    if message.failed:
        result["is_error"] = True
    return result


def _trim_prefill(turn: Turn) -> None:
    """An answer that is to be carried on may not end in white space."""
    role, content = turn
    last = content[-1]
    if role == "assistant" and isinstance(last, dict) and last["type"] == "text":
        content[-1] = _text(last["text"].rstrip())


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
