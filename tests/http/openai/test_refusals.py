"""What is wrong with a request is told in OpenAI's words, by the name of the field."""

from io import BytesIO
from typing import Any

import openai
import pytest
from aiohttp import FormData

from tests.http.client import Answer
from tests.http.openai.conftest import Host, Service

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT, RESPONSES = "/tracon/v1/chat/completions", "/tracon/v1/responses"
HI = [{"role": "user", "content": "hi"}]
NAMED = {"type": "json_schema", "name": "x"}


def chat(**more: Any) -> dict[str, Any]:
    return {"model": "echo", "messages": HI, **more}


def said(**message: Any) -> dict[str, Any]:
    return chat(messages=[message])


def part(**fields: Any) -> dict[str, Any]:
    return said(role="user", content=[fields])


def schema(**schema: Any) -> dict[str, Any]:
    return chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})


def response(**more: Any) -> dict[str, Any]:
    return {"model": "echo", "input": "hi", **more}


def item(**fields: Any) -> dict[str, Any]:
    return response(input=[fields])


OF_CHAT: list[tuple[dict[str, Any], str | None]] = [
    ({"messages": HI}, "model"),
    ({"model": "echo"}, "messages"),
    (chat(model=""), "model"),
    (chat(model=7), "model"),
    (chat(messages=[]), "messages"),
    (chat(messages="hi"), "messages"),
    (said(role="robot", content="hi"), "messages[0].role"),
    (said(role="function", name="f", content="hi"), "messages[0].role"),
    (said(role="user"), "messages[0].content"),
    (said(role="user", content=None), "messages[0].content"),
    (said(role="user", content=7), "messages[0].content"),
    (said(role="assistant"), "messages[0].content"),
    (said(role="assistant", content=""), "messages[0].content"),
    (said(role="assistant", content="x", function_call={"name": "f"}), "messages[0].function_call"),
    (said(role="assistant", tool_calls=[{"id": "c", "type": "custom"}]), "messages[0].tool_calls[0].type"),
    (said(role="tool", content="x"), "messages[0].tool_call_id"),
    (said(role="tool", content="x", tool_call_id="c"), None),
    (part(type="image_url", image_url={"url": "x"}), "messages[0].content[0].type"),
    (part(type="input_audio", input_audio={}), "messages[0].content[0].type"),
    (part(type="file", file={}), "messages[0].content[0].type"),
    (part(type="text"), "messages[0].content[0]"),
    (part(text="x"), "messages[0].content[0].type"),
    (chat(tools=[{"type": "function", "function": {"name": "f"}}]), "tools"),
    (chat(functions=[{"name": "f"}]), "functions"),
    (chat(tool_choice="none"), "tool_choice"),
    (chat(tool_choice={"type": "function"}), "tool_choice"),
    (chat(function_call="none"), "function_call"),
    (chat(web_search_options={}), "web_search_options"),
    (chat(n=2), "n"),
    (chat(n=0), "n"),
    (chat(logprobs=True), "logprobs"),
    (chat(top_logprobs=2), "top_logprobs"),
    (chat(frequency_penalty=0.5), "frequency_penalty"),
    (chat(presence_penalty=-0.5), "presence_penalty"),
    (chat(logit_bias={"7": 1}), "logit_bias"),
    (chat(modalities=["text", "audio"]), "modalities"),
    (chat(audio={"voice": "x"}), "audio"),
    (chat(moderation={"model": "x"}), "moderation"),
    (chat(temperature=2.5), "temperature"),
    (chat(temperature="hot"), "temperature"),
    (chat(top_p=-1), "top_p"),
    (chat(max_tokens=0), "max_tokens"),
    (chat(max_tokens=1.5), "max_tokens"),
    (chat(max_tokens=10**30), "max_tokens"),
    (chat(max_tokens=3, max_completion_tokens=4), "max_tokens"),
    (chat(stop=["a", "b", "c", "d", "e"]), "stop"),
    (chat(stop=""), "stop"),
    (chat(seed=2**64), "seed"),
    (chat(stream="yes"), "stream"),
    (chat(stream_options={"usage": True}), "stream_options.usage"),
    (chat(metadata={"a": 1}), "metadata[...]"),
    (chat(metadata={str(n): "x" for n in range(17)}), "metadata"),
    (chat(metadata={"session_id": ""}), "metadata.session_id"),
    (chat(metadata={"session_id": "a\nb"}), "metadata.session_id"),
    (chat(response_format={"type": "xml"}), "response_format.type"),
    (chat(response_format={"type": "json_schema"}), "response_format"),
    (schema(type="nonsense"), "response_format.json_schema.schema"),
    (schema(properties={"a": {"$ref": "http://127.0.0.1/a"}}), "response_format.json_schema.schema"),
    (schema(items={"$ref": "file:///etc/passwd"}), "response_format.json_schema.schema"),
    (schema(items={"properties": {"a": {"pattern": "(a+)+$"}}}), "response_format.json_schema.schema"),
    (schema(patternProperties={"a": {}}), "response_format.json_schema.schema"),
    (schema(description="x" * 70_000), "response_format.json_schema.schema"),
    (chat(temprature=1), "temprature"),
    (chat(top_k=1), "top_k"),
]

OF_RESPONSES: list[tuple[dict[str, Any], str | None]] = [
    ({"input": "hi"}, "model"),
    ({"model": "echo"}, "input"),
    (response(input=7), "input"),
    (response(input=[]), "input"),
    (response(input=[{"type": "reasoning"}]), "input"),
    (item(role="user"), "input[0].content"),
    (item(content="hi"), "input[0].role"),
    (item(role="robot", content="hi"), "input[0].role"),
    (item(type="item_reference", id="msg_1"), "input[0].type"),
    (item(type="web_search_call", id="ws_1"), "input[0].type"),
    (item(role="user", content=[{"type": "input_image"}]), "input[0].content[0].type"),
    (item(role="user", content=[{"type": "input_file"}]), "input[0].content[0].type"),
    (item(type="function_call", name="f"), "input[0].call_id"),
    (item(type="function_call", call_id="c"), "input[0].name"),
    (item(type="function_call", call_id="c", name="f"), None),
    (item(type="function_call_output", output="x"), "input[0].call_id"),
    (item(type="function_call_output", call_id="c", output="x"), None),
    (response(tools=[{"type": "web_search"}]), "tools"),
    (response(tool_choice="required"), "tool_choice"),
    (response(max_tool_calls=1), "max_tool_calls"),
    (response(prompt={"id": "p"}), "prompt"),
    (response(top_logprobs=1), "top_logprobs"),
    (response(context_management=[{"type": "compaction"}]), "context_management"),
    (response(moderation={"model": "x"}), "moderation"),
    (response(truncation="always"), "truncation"),
    (response(background=True, store=False), "store"),
    (response(temperature=-1), "temperature"),
    (response(max_output_tokens=0), "max_output_tokens"),
    (response(conversation="c", previous_response_id="r"), "previous_response_id"),
    (response(text={"format": {"type": "json_schema", "schema": {}}}), "text.format"),
    (response(text={"format": {**NAMED, "schema": {"type": 7}}}), "text.format.schema"),
    (response(metadata={"a" * 65: "x"}), "metadata"),
    (response(stop="x"), "stop"),
]


def sent(raw: bytes) -> dict[str, Any]:
    return {"data": BytesIO(raw), "headers": {"Content-Type": "application/json"}}


def refused(answer: Answer, status: int) -> dict[str, Any]:
    """The error object of an answer that has its whole shape."""
    assert answer.status == status, answer.body
    assert answer.headers["Content-Type"].partition(";")[0] == "application/json"
    assert set(answer.body) == {"error"}
    error: dict[str, Any] = answer.body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"].strip()
    assert isinstance(error["type"], str)
    assert isinstance(error["code"], str)
    return error


@pytest.mark.parametrize(("body", "param"), OF_CHAT)
async def test_a_wrong_completion_request_is_told_what_is_wrong(
    shared: Host, body: dict[str, Any], param: str | None
) -> None:
    """HTTP-1"""
    error = refused(await shared.http.request("POST", CHAT, json=body), 400)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


@pytest.mark.parametrize(("body", "param"), OF_RESPONSES)
async def test_a_wrong_response_request_is_told_what_is_wrong(
    shared: Host, body: dict[str, Any], param: str | None
) -> None:
    """HTTP-1"""
    error = refused(await shared.http.request("POST", RESPONSES, json=body), 400)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "code"),
    [
        ("POST", CHAT, sent(b"{"), 400, "bad_body"),
        ("POST", CHAT, sent(b'{"model": "\xff"}'), 400, "bad_body"),
        ("POST", CHAT, {"data": FormData({"model": "echo"})}, 415, "unsupported_media_type"),
        ("POST", f"{CHAT}?stream=true", {"json": chat()}, 400, "bad_query"),
        ("POST", CHAT, sent(b'"%b"' % (b"x" * 2_000_000)), 413, "body_too_large"),
        ("POST", CHAT, {"json": chat(model="nobody")}, 404, "model_not_found"),
        ("POST", RESPONSES, {"json": response(model="nobody")}, 404, "model_not_found"),
        ("GET", CHAT, {}, 405, "method_not_allowed"),
        ("GET", "/tracon/v1/nothing", {}, 404, "no_such_route"),
        ("GET", "/tracon/v1/models/nobody", {}, 404, "model_not_found"),
        ("GET", "/tracon/v1/responses/resp_7", {}, 404, "response_not_found"),
        ("POST", "/tracon/v1/responses/resp_7/cancel", {}, 404, "response_not_found"),
        ("GET", "/tracon/v1/conversations/conv_7/items?after=x", {}, 404, "conversation_not_found"),
        ("POST", "/tracon/v1/conversations", {"json": {"items": [{"type": "x"}]}}, 400, "bad_body"),
        ("GET", "/tracon/v1/models", {"headers": {"X-Forwarded-For": "10.0.0.7"}}, 401, "unauthenticated"),
    ],
)
async def test_every_other_refusal_has_the_same_shape(
    shared: Host, method: str, path: str, options: dict[str, Any], status: int, code: str
) -> None:
    """HTTP-1"""
    assert refused(await shared.http.request(method, path, **options), status)["code"] == code


async def test_what_is_switched_off_is_not_asked_for_again(service: Service) -> None:
    """HTTP-2"""
    host = await service.open(idempotency={"enabled": False})
    headers = {"Idempotency-Key": "k"}
    answer = await host.http.request("POST", RESPONSES, json=response(), headers=headers)
    assert refused(answer, 501)["code"] == "not_wired"
    assert answer.headers["X-Should-Retry"] == "false"


async def test_nothing_runs_for_a_wrong_request(shared: Host) -> None:
    """HTTP-1"""
    for path, cases in ((CHAT, OF_CHAT), (RESPONSES, OF_RESPONSES)):
        for body, _ in cases:
            await shared.http.request("POST", path, json=body)
    assert await shared.http.host.services.log.end_position() == 0


async def test_the_same_error_on_the_other_api_has_the_object_too(shared: Host) -> None:
    """HTTP-1: one body that serves both kinds of client."""
    problem = (await shared.http.get("/tracon/api/agents/nobody")).body
    assert problem["error"] == {
        "message": problem["detail"],
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }


async def test_agents_are_listed_as_models(shared: Host) -> None:
    listed = [model async for model in shared.ai.models.list()]
    agents = (await shared.http.get("/tracon/api/agents")).body["agents"]
    assert [model.id for model in listed] == [agent["name"] for agent in agents]
    assert {(model.object, model.owned_by) for model in listed} == {("model", "tracon")}
    assert await shared.ai.models.retrieve("echo") == next(model for model in listed if model.id == "echo")
    with pytest.raises(openai.NotFoundError):
        await shared.ai.models.retrieve("nobody")
