"""Gemini: what is asked, and what is made of its answers."""

import json
from typing import Any

import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.endpoint import Endpoint
from app.models.google import GeminiDialect
from app.models.http import HttpSession
from app.models.port import ModelCallError, ModelReply, ModelRequest, ToolSpec
from app.models.provider_settings import ProviderSettings
from app.models.sse import SseEvent
from domain.agent import ModelOptions
from domain.events import FinishReason
from domain.failure import FailureKind, classify
from domain.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from tests.models.calling import asking, completed, failure_of, streamed
from tests.models.conftest import adapter_of
from tests.upstream.server import Upstream

DIALECT = GeminiDialect("primary", Endpoint(base="http://localhost"))
ASKED = ModelRequest(model="gemini-3-pro", messages=(UserMessage(content="Hi"),))


def body_of(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(DIALECT.post(request, stream=False).body)
    return body


def chunk(*parts: dict[str, Any], reason: str | None = None, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [candidate | ({"finishReason": reason} if reason else {})], **fields}


def whole(value: dict[str, Any]) -> ModelReply:
    return DIALECT.read_body(ASKED, json.dumps(value).encode())


def read(*chunks: dict[str, Any]) -> tuple[str, ModelReply]:
    stream = DIALECT.stream(ASKED)
    text = "".join(stream.read(SseEvent(b"", json.dumps(each).encode())) for each in chunks)
    assert stream.finished
    return text, stream.reply()


def test_everything_has_its_place() -> None:
    tool = ToolSpec(name="get", description="It gets.", parameters={"type": "object"})
    request = ModelRequest(
        model="gemini-3-pro",
        instructions="You help.",
        messages=(
            SystemMessage(content="Be brief."),
            UserMessage(content="Hi"),
            AssistantMessage(tool_calls=(ToolCall(id="a", name="get", arguments='{"x":1}'),)),
            ToolMessage(tool_call_id="a", content="gone", failed=True),
            UserMessage(content="And?"),
        ),
        tools=(tool,),
        options=ModelOptions(temperature=0.5, top_p=0.9, max_output_tokens=99, stop=("END",), seed=7),
        response_schema={"type": "object"},
        provider_settings={"contents": [], "generationConfig": {"candidateCount": 1, "seed": 1}},
    )
    assert body_of(request) == {
        "systemInstruction": {"parts": [{"text": "You help.\n\nBe brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"name": "get", "args": {"x": 1}},
                        "thoughtSignature": "skip_thought_signature_validator",
                    }
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "get", "response": {"error": "gone"}}},
                    {"text": "And?"},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "get", "description": "It gets.", "parametersJsonSchema": {"type": "object"}}
                ]
            }
        ],
        "generationConfig": {
            "candidateCount": 1,
            "temperature": 0.5,
            "topP": 0.9,
            "maxOutputTokens": 99,
            "stopSequences": ["END"],
            "seed": 7,
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        },
    }


@pytest.mark.parametrize(
    ("model", "signed"),
    [
        ("gemini-3-pro", True),
        ("gemini-2.5-flash", False),
        ("models/gemini-1.5-pro", False),
        ("gemini-20", True),
    ],
)
def test_foreign_calls_are_signed_for_the_models_that_insist(model: str, signed: bool) -> None:
    """CHAIN-15."""
    call = AssistantMessage(tool_calls=(ToolCall(id="a", name="get", arguments="{}"),))
    contents = body_of(ModelRequest(model=model, messages=(UserMessage(content="Hi"), call)))["contents"]
    assert ("thoughtSignature" in contents[1]["parts"][0]) is signed


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("OTHER", FinishReason.STOP),
        (None, FinishReason.STOP),
    ],
)
def test_finish_reasons_come_in_common_terms(reason: str | None, finish: FinishReason) -> None:
    assert whole(chunk({"text": "Hi"}, reason=reason)).finish is finish


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"])
def test_a_filter_that_ended_the_answer_is_one(reason: str) -> None:
    with pytest.raises(ModelCallError) as caught:
        read(chunk({"text": "Well, "}), chunk(reason=reason))
    assert caught.value.failure.kind is FailureKind.CONTENT_FILTER


def test_a_blocked_question_is_filtered() -> None:
    with pytest.raises(ModelCallError) as caught:
        whole({"promptFeedback": {"blockReason": "SAFETY"}})
    assert caught.value.failure.kind is FailureKind.CONTENT_FILTER


def test_a_call_that_the_model_bungled_is_an_error_before_content() -> None:
    """It shares the one retry, and the next link may do better."""
    with pytest.raises(ModelCallError) as caught:
        read(chunk(reason="MALFORMED_FUNCTION_CALL"))
    failure = caught.value.failure
    assert (failure.kind, failure.code) == (FailureKind.REPORTED, "MALFORMED_FUNCTION_CALL")
    assert classify(failure) == "error_pre"


def test_thoughts_are_no_answer_and_a_sign_of_life() -> None:
    """CLASS-2."""
    stream = DIALECT.stream(ASKED)
    begun = []
    for each in (chunk(), chunk({"text": ""}), chunk({"text": "Hmm", "thought": True})):
        assert stream.read(SseEvent(b"", json.dumps(each).encode())) == ""
        begun.append(stream.begun)
    assert begun == [False, False, True]


def test_calls_without_ids_get_ids_of_their_own() -> None:
    call = {"functionCall": {"name": "get", "args": {"x": 1}}}
    _, reply = read(chunk(call, call, reason="STOP"))
    first, second = reply.message.tool_calls
    assert first.id
    assert second.id
    assert first.id != second.id
    assert first.arguments == '{"x":1}'
    assert reply.finish is FinishReason.TOOL_CALLS


def test_a_signature_on_text_is_given_back_with_its_text() -> None:
    """CHAIN-15."""
    text, reply = read(
        chunk({"text": "Hel"}),
        chunk({"text": "lo"}),
        chunk({"text": "", "thoughtSignature": "c2ln"}, reason="STOP"),
    )
    assert text == reply.message.content == "Hello"
    again = body_of(ModelRequest(model="gemini-3-pro", messages=(UserMessage(content="?"), reply.message)))
    assert again["contents"][1]["parts"] == [{"text": "Hello"}, {"text": "", "thoughtSignature": "c2ln"}]


def test_the_wait_that_the_body_asks_for_is_read() -> None:
    """CLASS-1."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": [{"x": 1}, info]}
    with pytest.raises(ModelCallError) as caught:
        read({"error": error})
    assert (caught.value.failure.status, caught.value.failure.retry_after_s) == (429, 1.5)


async def test_exhausted_may_be_waited_for_where_the_wait_is_short(
    upstream: Upstream, http: HttpSession
) -> None:
    """CLASS-4: RESOURCE_EXHAUSTED."""
    failure = await failure_of(adapter_of("google", upstream.url, http), asking("429-after-1"))
    assert (failure.code, failure.retry_after_s, classify(failure)) == (
        "RESOURCE_EXHAUSTED",
        1.0,
        "transient",
    )


async def test_paths_and_headers(upstream: Upstream, http: HttpSession) -> None:
    for base_url in (upstream.url, f"{upstream.url}/v1beta/"):
        settings = ProviderSettings(type="google", base_url=base_url, api_key_env="KEY")
        adapter = build(Account("p"), settings, http, {"KEY": "k"})
        await streamed(adapter, asking("models/text"))
        await completed(adapter, asking("text"))
    attempts = upstream.log.of("text")
    assert [attempt.path for attempt in attempts] == [
        "/v1beta/models/text:streamGenerateContent?alt=sse",
        "/v1beta/models/text:generateContent",
    ] * 2
    assert {name.lower(): value for name, value in attempts[0].headers.items()}["x-goog-api-key"] == "k"
