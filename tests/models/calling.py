"""Calls to an adapter, and what came of them as one value to compare."""

import json
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from app.models.port import ModelAdapter, ModelCallError, ModelReply, ModelRequest, TextChunk
from domain.failure import CallFailure, FailureClass, classify
from domain.messages import UserMessage

_USUAL: dict[str, Any] = {"messages": (UserMessage(content="Hello?"),), "first_content_timeout_s": 5.0}


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A reply, without the ids that nobody chose."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A failure, without its prose."""

    kind: str
    failure_class: FailureClass
    status: int | None = None
    code: str | None = None
    retry_after_s: float | None = None
    delivered: str = ""
    """The text that was handed on before."""


def asking(model: str, **fields: Any) -> ModelRequest:
    fields = {**_USUAL, **fields}
    return ModelRequest(model=model, **fields)


async def streamed(adapter: ModelAdapter, request: ModelRequest) -> Answered | Failed:
    """Everything that a streamed call gives, checked for what every stream must keep to."""
    text, reply = "", None
    try:
        async with aclosing(adapter.stream(request)) as parts:
            async for part in parts:
                assert reply is None, "something came after the reply"
                if isinstance(part, TextChunk):
                    assert part.text, "an empty chunk"
                    text += part.text
                else:
                    reply = part
    except ModelCallError as error:
        return _failed(error.failure, text)
    assert reply is not None, "neither a reply nor a failure"
    assert reply.message.content == text, "the reply is not what was streamed"
    return _answered(reply)


async def completed(adapter: ModelAdapter, request: ModelRequest) -> Answered | Failed:
    try:
        return _answered(await adapter.complete(request))
    except ModelCallError as error:
        return _failed(error.failure, "")


async def failure_of(adapter: ModelAdapter, request: ModelRequest) -> CallFailure:
    """The failure of a streamed call."""
    try:
        async with aclosing(adapter.stream(request)) as parts:
            async for _ in parts:
                pass
    except ModelCallError as error:
        return error.failure
    raise AssertionError("the call did not fail")


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error and everything that hangs on it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _answered(reply: ModelReply) -> Answered:
    ids = [call.id for call in reply.message.tool_calls]
    assert len(set(ids)) == len(ids), "ids repeat within a reply"
    assert all(ids), "a call without an id"
    return Answered(
        text=reply.message.content,
        calls=tuple((call.name, _spelled(call.arguments)) for call in reply.message.tool_calls),
        finish=reply.finish,
    )


def _spelled(arguments: str) -> str:
    """JSON in one spelling, whatever the model's or the wire's was."""
    try:
        return json.dumps(json.loads(arguments))
    except ValueError:
        return arguments


def _failed(failure: CallFailure, text: str) -> Failed:
    assert failure.content_delivered == bool(text), "content_delivered is not what was delivered"
    assert failure.message, "a failure says what happened"
    return Failed(
        kind=failure.kind,
        failure_class=classify(failure),
        status=failure.status,
        code=failure.code,
        retry_after_s=failure.retry_after_s,
        delivered=text,
    )
