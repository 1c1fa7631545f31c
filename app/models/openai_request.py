"""A request in the words of Chat Completions."""

import re
from typing import Any, assert_never

from app.models.port import ModelRequest, ToolSpec
from app.models.transcript import arguments_text, with_wire_ids
from domain.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage


def body_of(
    request: ModelRequest,
    *,
    stream: bool,
    call_ids: re.Pattern[str],
    instructions_role: str,
    max_tokens_field: str,
) -> dict[str, Any]:
    """The request's body. Provider settings come first, so that they cannot replace anything else."""
    body: dict[str, Any] = {**request.provider_settings, "model": request.model, "stream": stream}
    body["messages"] = _messages(request, call_ids, instructions_role)
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.response_schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": request.response_schema},
        }
    options = request.options
    for field, value in (
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        (max_tokens_field, options.max_output_tokens),
        ("stop", options.stop or None),
        ("seed", options.seed),
    ):
        if value is not None:
            body[field] = value
    return body


def _messages(
    request: ModelRequest, call_ids: re.Pattern[str], instructions_role: str
) -> list[dict[str, Any]]:
    messages = [_message(message, instructions_role) for message in with_wire_ids(request.messages, call_ids)]
    if request.instructions:
        messages.insert(0, {"role": instructions_role, "content": request.instructions})
    return messages


def _message(message: Message, instructions_role: str) -> dict[str, Any]:
    match message:
        case SystemMessage(content=content):
            return {"role": instructions_role, "content": content}
        case UserMessage(content=content):
            return {"role": "user", "content": content}
        case AssistantMessage():
            return _assistant(message)
        case ToolMessage(tool_call_id=call_id, content=content):
            return {"role": "tool", "tool_call_id": call_id, "content": content}
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage) -> dict[str, Any]:
    if not message.tool_calls:
        return {"role": "assistant", "content": message.content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_text(call.arguments)},
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.content or None, "tool_calls": calls}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }
