"""OpenAI's Responses: what is asked, and what is made of its answers."""

import json
from typing import Any

import msgspec
import pytest

from app.models.endpoint import Endpoint
from app.models.openai_responses import ResponsesDialect
from app.models.port import ModelCallError, ModelReply, ModelRequest, ToolSpec
from app.models.sse import SseEvent
from domain.agent import ModelOptions
from domain.failure import FailureKind
from domain.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage

DIALECT = ResponsesDialect("primary", Endpoint(base="http://localhost/v1"), instructions_role="developer")
ASKED = ModelRequest(model="m", messages=(UserMessage(content="Hi"),))


def body_of(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(DIALECT.post(request, stream=False).body)
    return body


def event(name: str, **fields: Any) -> SseEvent:
    return SseEvent(b"", json.dumps({"type": name, **fields}).encode())


def read(*events: SseEvent) -> tuple[str, ModelReply]:
    stream = DIALECT.stream(ASKED)
    text = "".join(stream.read(each) for each in events)
    assert stream.finished
    return text, stream.reply()


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(parts)}


def test_the_conversation_goes_out_as_items_and_nothing_is_stored() -> None:
    tool = ToolSpec(name="get", description="It gets.", parameters={"type": "object"})
    request = ModelRequest(
        model="m",
        instructions="You help.",
        messages=(
            SystemMessage(content="Be brief."),
            UserMessage(content="Hi"),
            AssistantMessage(content="Let me see.", tool_calls=(ToolCall(id="a", name="get", arguments=""),)),
            ToolMessage(tool_call_id="a", content="gone", failed=True),
        ),
        tools=(tool,),
        options=ModelOptions(temperature=0.5, top_p=0.9, max_output_tokens=99, stop=("END",), seed=7),
        response_schema={"type": "object"},
        provider_settings={"model": "x", "input": "y", "stream": True, "text": {"verbosity": "low"}},
    )
    assert body_of(request) == {
        "model": "m",
        "stream": False,
        "store": False,
        "instructions": "You help.",
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Let me see."},
            {"type": "function_call", "call_id": "a", "name": "get", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "gone"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "get",
                "description": "It gets.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "text": {
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}},
        },
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 99,
    }


def test_encrypted_reasoning_is_asked_for_only_where_reasoning_is() -> None:
    """Models that do not reason refuse to be asked."""
    assert "include" not in body_of(ASKED)
    reasoning = msgspec.structs.replace(ASKED, provider_settings={"reasoning": {"effort": "low"}})
    assert body_of(reasoning)["include"] == ["reasoning.encrypted_content"]


def test_text_that_came_in_no_delta_is_handed_on_at_the_end() -> None:
    output = [message({"type": "output_text", "text": "Hello there."})]
    text, reply = read(
        event("response.output_text.delta", delta="Hello "),
        event("response.completed", response={"status": "completed", "output": output}),
    )
    assert text == reply.message.content == "Hello there."


def test_an_end_without_output_takes_the_items_that_were_done() -> None:
    item = {"type": "function_call", "call_id": "a", "name": "get", "arguments": '{"x":1}'}
    _, reply = read(
        event("response.output_item.done", item=item),
        event("response.completed", response={"status": "completed", "output": []}),
    )
    assert [(c.id, c.name, c.arguments) for c in reply.message.tool_calls] == [("a", "get", '{"x":1}')]


def test_a_refusal_is_an_answer() -> None:
    output = [message({"type": "refusal", "refusal": "I will not."})]
    text, reply = read(
        event("response.refusal.delta", delta="I will "),
        event("response.refusal.delta", delta="not."),
        event("response.completed", response={"status": "completed", "output": output}),
    )
    assert text == reply.message.content == "I will not."
    whole = json.dumps({"status": "completed", "output": output}).encode()
    assert DIALECT.read_body(ASKED, whole).message.content == "I will not."


def test_arguments_that_stand_beside_their_item_are_its_own() -> None:
    """TOOL-1: a call that lost its arguments would be made without any."""
    called = {"type": "function_call", "id": "item_1", "call_id": "a", "name": "f", "arguments": ""}
    done = event("response.function_call_arguments.done", item_id="item_1", arguments='{"x":1}')
    of_another = event("response.function_call_arguments.done", item_id="item_2", arguments='{"x":2}')
    item, end = event("response.output_item.done", item=called), {"status": "completed", "output": []}
    _, reply = read(done, of_another, item, event("response.completed", response=end))
    assert [call.arguments for call in reply.message.tool_calls] == ['{"x":1}']
    _, reply = read(of_another, item, event("response.completed", response=end))
    assert [call.arguments for call in reply.message.tool_calls] == ["{}"]


def test_lifecycle_and_opened_items_are_no_content_and_reasoning_is_a_sign_of_life() -> None:
    """CLASS-2."""
    stream, begun = DIALECT.stream(ASKED), []
    for each in (
        event("response.created", response={"status": "in_progress"}),
        event("response.output_item.added", item={"type": "function_call", "name": "f"}),
        event("response.content_part.added", part={"type": "output_text", "text": ""}),
        event("response.output_text.delta", delta=""),
        event("response.reasoning_summary_text.delta", delta="Hmm"),
    ):
        assert stream.read(each) == ""
        begun.append(stream.begun)
    assert begun == [False, False, False, False, True]


@pytest.mark.parametrize(
    "failing",
    [
        event(
            "response.failed",
            response={"status": "failed", "error": {"code": "server_error", "message": "no"}},
        ),
        event("error", code="server_error", message="no", param=None),
        event("error", error={"type": "server_error", "message": "no"}),
        SseEvent(b"error", b'{"error": {"code": "server_error", "message": "no"}}'),
        SseEvent(b"", b'{"error": {"code": "server_error", "message": "no"}}'),
    ],
)
def test_every_way_of_reporting_an_error_is_read(failing: SseEvent) -> None:
    """CLASS-4."""
    with pytest.raises(ModelCallError) as caught:
        DIALECT.stream(ASKED).read(failing)
    failure = caught.value.failure
    assert (failure.kind, failure.code, failure.status) == (FailureKind.REPORTED, "server_error", 500)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (
            {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "no"}},
            "rate_limit_exceeded",
        ),
        ({"status": "cancelled", "error": None, "output": []}, "cancelled"),
        ({"error": {"type": "server_error", "message": "no"}}, "server_error"),
    ],
)
def test_a_body_that_failed_is_reported(body: dict[str, Any], code: str) -> None:
    with pytest.raises(ModelCallError) as caught:
        DIALECT.read_body(ASKED, json.dumps(body).encode())
    assert (caught.value.failure.kind, caught.value.failure.code) == (FailureKind.REPORTED, code)
