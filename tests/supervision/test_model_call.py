"""One call to one link: what is heard of it, and what is made of its reply (CHAIN-14, CHAIN-15)."""

from collections.abc import AsyncGenerator

import msgspec
import pytest

from app.models.kept_blocks import keep
from app.models.port import (
    MaySend,
    ModelAdapter,
    ModelCallError,
    ModelReply,
    ModelRequest,
    TextChunk,
    always,
)
from app.supervision.model_call import call_model
from domain.events import FinishReason
from domain.failure import CallFailure, FailureKind
from domain.messages import AssistantMessage, ToolCall, Usage

ASKED = ModelRequest(model="m", messages=())
LIMITED = msgspec.structs.replace(ASKED, first_content_timeout_s=5.0)
BEFORE = "Once upon a time there was a "
CALL = ToolCall(id="c1", name="look", arguments="{}")
BROKEN = CallFailure(kind=FailureKind.RESET, message="the connection broke", content_delivered=True)


class Says:
    """A provider that says this in pieces, and breaks off behind them if it is told to."""

    def __init__(self, *pieces: str, calls: tuple[ToolCall, ...] = (), broken: bool = False) -> None:
        self._pieces = pieces
        self._calls = calls
        self._broken = broken

    async def complete(self, request: ModelRequest, may_send: MaySend = always) -> ModelReply:
        if self._broken:
            raise ModelCallError(msgspec.structs.replace(BROKEN, content_delivered=False))
        text = "".join(self._pieces)
        message = AssistantMessage(
            content=text, tool_calls=self._calls, provider_blocks=keep("p", "m", [{"said": text}])
        )
        return ModelReply(message=message, finish=FinishReason.STOP, usage=Usage(output_tokens=9))

    async def stream(
        self, request: ModelRequest, may_send: MaySend = always
    ) -> AsyncGenerator[TextChunk | ModelReply, None]:
        for piece in self._pieces:
            yield TextChunk(piece)
        if self._broken:
            raise ModelCallError(BROKEN)
        yield await self.complete(request)

    async def close(self) -> None:
        return None


async def called(
    adapter: ModelAdapter, before: str = "", *, watched: bool = True, asked: ModelRequest = LIMITED
) -> tuple[ModelReply, list[str]]:
    """The reply, and what a watcher heard."""
    heard: list[str] = []
    reply = await call_model(adapter, asked, before, heard.append if watched else None)
    return reply, heard


async def test_a_reply_that_repeats_nothing_is_passed_on_as_it_is() -> None:
    reply, heard = await called(Says("harbour ", "master."), BEFORE)
    assert heard == ["harbour ", "master."]
    assert reply.message.content == "harbour master."
    assert reply.message.provider_blocks is not None


async def test_what_a_provider_keeps_of_a_repetition_is_not_kept() -> None:
    """CHAIN-15: it would say twice what the message says once."""
    reply, heard = await called(Says(BEFORE, "harbour master.", calls=(CALL,)), BEFORE)
    assert heard == ["harbour master."]
    assert (reply.message.content, reply.message.tool_calls) == ("harbour master.", (CALL,))
    assert (reply.message.provider_blocks, reply.usage) == (None, Usage(output_tokens=9))


async def test_text_that_was_held_back_until_the_end_is_heard() -> None:
    """CHAIN-14: it stood in the text before, but it was no repetition."""
    reply, heard = await called(Says("there ", "was a "), BEFORE + "lion, and ")
    assert "".join(heard) == reply.message.content == "there was a "


async def test_a_repetition_and_nothing_else_is_an_empty_reply() -> None:
    with pytest.raises(ModelCallError) as caught:
        await called(Says(BEFORE), BEFORE)
    assert (caught.value.failure.kind, caught.value.failure.content_delivered) == (FailureKind.EMPTY, False)


async def test_a_repetition_with_a_call_is_a_call() -> None:
    reply, _ = await called(Says(BEFORE, calls=(CALL,)), BEFORE)
    assert reply.message == AssistantMessage(tool_calls=(CALL,))


@pytest.mark.parametrize(
    ("said", "before", "watched", "delivered"),
    [("Hello ", "", True, True), ("Hello ", "", False, False), (BEFORE, BEFORE, True, False)],
    ids=["heard", "by nobody", "only what was said before"],
)
async def test_a_failure_is_after_content_if_somebody_heard_something(
    said: str, before: str, watched: bool, delivered: bool
) -> None:
    """CHAIN-7: what nobody heard may be asked for again."""
    with pytest.raises(ModelCallError) as caught:
        await called(Says(said, broken=True), before, watched=watched)
    assert caught.value.failure == msgspec.structs.replace(BROKEN, content_delivered=delivered)


async def test_a_provider_that_only_streams_without_a_reply_has_a_defect() -> None:
    class Mute(Says):
        async def stream(
            self, request: ModelRequest, may_send: MaySend = always
        ) -> AsyncGenerator[TextChunk | ModelReply, None]:
            yield TextChunk("Hello")

    with pytest.raises(ModelCallError) as caught:
        await called(Mute())
    assert caught.value.failure.kind is FailureKind.INTERNAL


async def test_without_a_limit_and_a_watcher_the_answer_comes_in_one_piece() -> None:
    """CLASS-2."""

    class Whole(Says):
        def stream(
            self, request: ModelRequest, may_send: MaySend = always
        ) -> AsyncGenerator[TextChunk | ModelReply, None]:
            raise AssertionError("this server does not stream")

    reply, _ = await called(Whole("Hello."), watched=False, asked=ASKED)
    assert reply.message.content == "Hello."
