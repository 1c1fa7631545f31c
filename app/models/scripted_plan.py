"""What a scripted behaviour comes to for one request: some text, then an end."""

import msgspec
from multidict import CIMultiDict

from app.models.port import ModelRequest
from app.models.replies import FILTERED
from app.models.scripted_settings import Behaviour, ScriptedCall, ScriptedStatus, in_words
from app.models.tool_calls import new_call_id
from app.models.wire_errors import WireError, error_in, failure_of_status, failure_reported
from domain.failure import CallFailure, FailureKind
from domain.messages import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage


class Silence(msgspec.Struct, frozen=True):
    """Nothing more comes."""


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The answer is whole. Without any text or call, that makes it an empty one."""

    length: bool = False
    calls: tuple[ToolCall, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it will go."""

    chunks: tuple[str, ...] = ()
    ending: Finish | CallFailure | Silence = Finish()


NO_SUCH_MODEL = Behaviour(status=ScriptedStatus(status=404, code="model_not_found", message="no such model"))

_FAULTS = {
    "refused": CallFailure(kind=FailureKind.CONNECT, message="no connection: the script refuses it"),
    "reset": CallFailure(kind=FailureKind.RESET, message="the connection broke, as scripted"),
    "cut_after": CallFailure(kind=FailureKind.RESET, message="the answer ended early, as scripted"),
    "unreadable": CallFailure(
        kind=FailureKind.UNREADABLE, message="a page in place of an answer", status=200
    ),
    "content_filter": FILTERED,
}


def plan(behaviour: Behaviour, request: ModelRequest) -> Plan:
    """Pure, except that ids of tool calls are made up where the script has none."""
    kind = behaviour.kind
    if kind in ("echo", "last_tool_result"):
        return Plan(chunks=in_words(_quoted(behaviour, request.messages)))
    if kind in ("cut_after", "stall_after"):
        chunks = behaviour.pieces[: getattr(behaviour, kind)]
        return Plan(chunks=chunks, ending=_FAULTS.get(kind) or Silence())
    return Plan(chunks=behaviour.pieces, ending=_ending(kind, behaviour))


def usage_of(behaviour: Behaviour, request: ModelRequest, text: str, calls: tuple[ToolCall, ...]) -> Usage:
    """The given usage, or one token per word."""
    if behaviour.usage is not None:
        return behaviour.usage.usage()
    asked = [request.instructions, *(message.content for message in request.messages)]
    told = [text, *(f"{call.name} {call.arguments}" for call in calls)]
    return Usage(input_tokens=_words(asked), output_tokens=_words(told))


def replies_in_turn(messages: tuple[Message, ...]) -> int:
    """How many replies the current turn has already: those after the last user message."""
    count = 0
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            break
        count += isinstance(message, AssistantMessage)
    return count


def _ending(kind: str, behaviour: Behaviour) -> Finish | CallFailure | Silence:
    if kind in _FAULTS:
        return _FAULTS[kind]
    if behaviour.status is not None:
        return _refusal(behaviour.status)
    if behaviour.error is not None:
        return _reported(behaviour.error.code, behaviour.error.message)
    if kind == "silent":
        return Silence()
    calls = (behaviour.tool_call,) if behaviour.tool_call is not None else behaviour.tool_calls or ()
    return Finish(length=kind == "length", calls=tuple(map(_call, calls)))


def _refusal(status: int | ScriptedStatus) -> CallFailure:
    """Through the same reading as an answer over HTTP."""
    if isinstance(status, int):
        status = ScriptedStatus(status=status)
    headers = CIMultiDict(status.headers)
    if status.retry_after is not None:
        headers["Retry-After"] = str(status.retry_after)
    body = {"error": {"message": status.message, "code": status.code}}
    return failure_of_status(status.status, headers, msgspec.json.encode(body))


def _reported(code: str | None, message: str) -> CallFailure:
    error = error_in({"error": {"message": message, "code": code}})
    return failure_reported(error or WireError())


def _call(call: ScriptedCall) -> ToolCall:
    given = call.arguments
    text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    return ToolCall(id=call.id or new_call_id(), name=call.name, arguments=text)


def _quoted(behaviour: Behaviour, messages: tuple[Message, ...]) -> str:
    if behaviour.echo:
        return _filled(behaviour.echo, "{message}", _last(UserMessage, messages))
    return _filled(behaviour.last_tool_result, "{result}", _last(ToolMessage, messages))


def _filled(template: bool | str, placeholder: str, content: str) -> str:
    return template.replace(placeholder, content) if isinstance(template, str) else content


def _last(role: type[UserMessage] | type[ToolMessage], messages: tuple[Message, ...]) -> str:
    return next((message.content for message in reversed(messages) if isinstance(message, role)), "")


def _words(texts: list[str]) -> int:
    return sum(len(text.split()) for text in texts)
