"""A request in the words of Gemini's generateContent."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import msgspec

from app.models.kept_blocks import kept
from app.models.port import ModelRequest, ToolSpec
from app.models.transcript import arguments_object
from domain.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage

_OPENING = "(The conversation goes on.)"
# Newer models refuse a function call without the signature of the thought behind it. This one is documented
# for calls that another model made; the older models know no signatures.
_FOREIGN_SIGNATURE = "skip_thought_signature_validator"
_WITHOUT_SIGNATURES = re.compile(r"(models/)?gemini-[12]\b")

Turn = tuple[str, list[Any]]


def body_of(provider: str, request: ModelRequest) -> dict[str, Any]:
    """The request's body. The model, and whether to stream, stand in the URL."""
    body: dict[str, Any] = dict(request.provider_settings)
    body["contents"] = [
        {"role": role, "parts": parts} for role, parts in _Conversation(provider, request).turns()
    ]
    if instructions := _instructions(request):
        body["systemInstruction"] = {"parts": [{"text": instructions}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
    if config := {**(body.get("generationConfig") or {}), **_config(request)}:
        body["generationConfig"] = config
    return body


def _instructions(request: ModelRequest) -> str:
    """Instructions have one place only, outside of the conversation."""
    told = (message.content for message in request.messages if isinstance(message, SystemMessage))
    return "\n\n".join(text for text in (request.instructions, *told) if text.strip())


def _config(request: ModelRequest) -> dict[str, Any]:
    options = request.options
    config: dict[str, Any] = {
        "temperature": options.temperature,
        "topP": options.top_p,
        "maxOutputTokens": options.max_output_tokens,
        "stopSequences": options.stop or None,
        "seed": options.seed,
    }
    if request.response_schema is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": request.response_schema}
    return {field: value for field, value in config.items() if value is not None}


class _Conversation:
    """The turns as this wire wants them. A result is matched to its call by name and place, not by id."""

    def __init__(self, provider: str, request: ModelRequest) -> None:
        self._provider = provider
        self._model = request.model
        self._messages = request.messages
        self._calls: dict[str, ToolCall] = {}
        self._wire_ids: dict[str, str] = {}

    def turns(self) -> list[Turn]:
        turns: list[Turn] = []
        for message in self._messages:
            role, parts = self._parts(message)
            if not parts:
                continue
            if turns and turns[-1][0] == role:
                turns[-1][1].extend(parts)
            else:
                turns.append((role, parts))
        if not turns or turns[0][0] != "user":
            turns.insert(0, ("user", [{"text": _OPENING}]))
        return turns

    def _parts(self, message: Message) -> tuple[str, list[Any]]:
        match message:
            case SystemMessage():
                return "user", []
            case UserMessage(content=content):
                return "user", [{"text": content}] if content else []
            case AssistantMessage():
                return "model", self._said(message)
            case ToolMessage():
                return "user", [self._result(message)]
            case _:
                assert_never(message)

    def _said(self, message: AssistantMessage) -> list[Any]:
        self._calls = {call.id: call for call in message.tool_calls}
        own = kept(message, self._provider, self._model)
        self._wire_ids = dict(_own_ids(message.tool_calls, own or ()))
        return list(own or self._foreign(message))

    def _foreign(self, message: AssistantMessage) -> Iterator[dict[str, Any]]:
        if message.content:
            yield {"text": message.content}
        signature = {"thoughtSignature": _FOREIGN_SIGNATURE}
        for call in message.tool_calls:
            part = {"functionCall": {"name": call.name, "args": arguments_object(call.arguments)}}
            yield part if _WITHOUT_SIGNATURES.match(self._model) else part | signature

    def _result(self, message: ToolMessage) -> dict[str, Any]:
        call = self._calls.get(message.tool_call_id)
        response: dict[str, Any] = {
            "name": call.name if call else message.tool_call_id,
            "response": {"error" if message.failed else "result": message.content},
        }
        if wire_id := self._wire_ids.get(message.tool_call_id):
            response["id"] = wire_id
        return {"functionResponse": response}


def _own_ids(calls: Iterable[ToolCall], parts: Iterable[msgspec.Raw]) -> Iterator[tuple[str, str]]:
    """Our id of each call, and the model's own where it gave one: that one belongs into the result."""
    decoded = (msgspec.json.decode(part) for part in parts)
    called = [part["functionCall"] for part in decoded if "functionCall" in part]
    for call, wire in zip(calls, called, strict=False):
        if isinstance(wire, dict) and isinstance(wire.get("id"), str):
            yield call.id, wire["id"]


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
