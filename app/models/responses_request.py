"""A request in the words of OpenAI's Responses. The conversation is sent whole: nothing is stored there."""

import re
from collections.abc import Iterator
from typing import Any, assert_never

from app.models.kept_blocks import kept
from app.models.port import ModelRequest, ToolSpec
from app.models.transcript import arguments_text, with_wire_ids
from domain.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

_CALL_IDS = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_ENCRYPTED = "reasoning.encrypted_content"


def body_of(provider: str, request: ModelRequest, *, stream: bool, instructions_role: str) -> dict[str, Any]:
    """The request's body. There is no field for a seed or for stop sequences."""
    body: dict[str, Any] = {"store": False, **request.provider_settings}
    if "reasoning" in body:
        body.setdefault("include", [_ENCRYPTED])
    body |= {"model": request.model, "stream": stream}
    body["input"] = [
        item
        for message in with_wire_ids(request.messages, _CALL_IDS)
        for item in _items(message, provider, request.model, instructions_role)
    ]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.response_schema is not None:
        body["text"] = {
            **(body.get("text") or {}),
            "format": {"type": "json_schema", "name": "answer", "schema": request.response_schema},
        }
    options = request.options
    for field, value in (
        ("instructions", request.instructions or None),
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("max_output_tokens", options.max_output_tokens),
    ):
        if value is not None:
            body[field] = value
    return body


def _items(message: Message, provider: str, model: str, instructions_role: str) -> Iterator[Any]:
    match message:
        case SystemMessage(content=content):
            yield {"role": instructions_role, "content": content}
        case UserMessage(content=content):
            yield {"role": "user", "content": content}
        case AssistantMessage():
            yield from kept(message, provider, model) or _said(message)
        case ToolMessage(tool_call_id=call_id, content=content):
            yield {"type": "function_call_output", "call_id": call_id, "output": content}
        case _:
            assert_never(message)


def _said(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    if message.content:
        yield {"role": "assistant", "content": message.content}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments_text(call.arguments),
        }


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }
