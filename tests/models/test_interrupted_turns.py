"""A session goes on after a run of it was cancelled, on whichever provider (CANCEL-3, C55)."""

import pytest

from app.models.http import HttpSession
from app.models.port import ToolSpec
from app.models.provider_settings import ProviderType
from domain import commands as c
from domain.decide import decide
from domain.events import FinishReason, ToolEffect, ToolFailure
from domain.evolve import evolve
from domain.messages import AssistantMessage, Message, SystemMessage, UserMessage
from domain.run import Run
from domain.session import turn_of
from tests.domain.facts import DEFINITION
from tests.domain.given import RUN_ID
from tests.models.calling import asking
from tests.models.conftest import WIRES, adapter_of
from tests.models.wire_rules import CHECKS
from tests.upstream.server import Upstream

TOOL = ToolSpec(name="get_weather", description="The weather.", parameters={"type": "object"})
QUESTION = (SystemMessage(content="Be brief."), UserMessage(content="Weather and time?"))
GO_ON = UserMessage(content="Never mind the time. What about tomorrow?")

HOW = ("left behind", "stopped", "not begun", "while it wrote")
"""What became of the second of two tool calls when the cancel came; or the cancel came before any."""


def cancelled(reply: AssistantMessage, how: str) -> Run:
    """A run that was cancelled after this reply, or during it."""
    commands: list[c.RunCommand] = [
        c.CreateRun(tenant="acme", agent="support", input=QUESTION, session_id="s"),
        c.StartRun(host="host-1", definition=DEFINITION),
        c.BeginModelCall(step=1, provider="primary", model="small"),
    ]
    if how != "while it wrote":
        first, second = (call.id for call in reply.tool_calls)
        commands += [
            c.RecordReply(step=1, message=reply, finish=FinishReason.TOOL_CALLS),
            c.InvokeTool(call_id=first, effect=ToolEffect.READ, call_key="k1"),
            c.RecordToolOutput(call_id=first, output="sunny"),
        ]
        if how != "not begun":
            commands.append(c.InvokeTool(call_id=second, effect=ToolEffect.EXTERNAL, call_key="k2"))
        if how == "left behind":
            commands.append(c.RecordUnknownOutcome(call_id=second, reason="it did not stop"))
        if how == "stopped":
            stopped = ToolFailure.CANCELLED
            commands.append(c.RecordToolFailure(call_id=second, failure=stopped, output="It was stopped."))
    run = Run(id=RUN_ID)
    for command in (*commands, c.CancelRun()):
        for event in decide(run, command):
            run = evolve(run, event)
    return run


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("reader", WIRES.values())
@pytest.mark.parametrize("writer", WIRES.values())
async def test_every_provider_takes_what_a_cancel_left_of_a_turn(
    writer: ProviderType, reader: ProviderType, how: str, upstream: Upstream, http: HttpSession
) -> None:
    """CANCEL-3, CHAIN-15 (C55): each call has a result, a synthetic one where it was interrupted."""
    reply = await adapter_of(writer, upstream.url, http).complete(asking("thinker", messages=QUESTION))
    messages: tuple[Message, ...] = (*turn_of(cancelled(reply.message, how)).messages, GO_ON)
    other = adapter_of(reader, upstream.url, http, name="backup")
    await other.complete(asking("text", messages=messages, tools=(TOOL,)))
    calls, results = CHECKS[reader](upstream.log.of("text")[-1].body)
    assert [name for _, name, _ in calls] == ([] if how == "while it wrote" else ["get_weather", "get_time"])
    assert results == [call_id for call_id, _, _ in calls]
