"""Chat Completions: what is asked."""

import json
from typing import Any

import msgspec

from app.models.endpoint import Endpoint
from app.models.openai_chat import ChatDialect
from app.models.port import ModelRequest, ToolSpec
from domain.agent import ModelOptions
from domain.messages import (
    AssistantMessage,
    ProviderBlocks,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

TOOL = ToolSpec(name="get_weather", description="The weather.", parameters={"type": "object"})
TRANSCRIPT = (
    SystemMessage(content="Be brief."),
    UserMessage(content="Weather?"),
    AssistantMessage(
        content="Let me look.",
        tool_calls=(
            ToolCall(id="toolu_01", name="get_weather", arguments='{"city":"Paris"}'),
            ToolCall(id="gemini/with a strange id", name="get_weather", arguments=""),
        ),
        provider_blocks=ProviderBlocks(provider="anthropic", blocks=(msgspec.Raw(b'{"type":"thinking"}'),)),
    ),
    ToolMessage(tool_call_id="toolu_01", content="sunny"),
    ToolMessage(tool_call_id="gemini/with a strange id", content="it broke", failed=True),
    AssistantMessage(tool_calls=(ToolCall(id="toolu_01", name="get_weather", arguments="{broken"),)),
    ToolMessage(tool_call_id="toolu_01", content="rain"),
)


def body_of(request: ModelRequest, *, stream: bool = False, **dialect: Any) -> dict[str, Any]:
    post = ChatDialect(Endpoint(base="http://localhost/v1"), **dialect).post(request, stream=stream)
    body: dict[str, Any] = json.loads(post.body)
    return body


def test_a_transcript_of_any_provider_is_one_that_this_wire_accepts() -> None:
    """CHAIN-15: blocks of others stay behind, ids fit and never repeat, arguments are JSON objects."""
    messages = body_of(ModelRequest(model="m", messages=TRANSCRIPT, instructions="You help."))["messages"]
    second, third = (call["id"] for call in [messages[3]["tool_calls"][1], messages[6]["tool_calls"][0]])
    assert messages == [
        {"role": "system", "content": "You help."},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {
                    "id": "toolu_01",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                },
                {"id": second, "type": "function", "function": {"name": "get_weather", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_01", "content": "sunny"},
        {"role": "tool", "tool_call_id": second, "content": "it broke"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": third,
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"malformed_arguments":"{broken"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": third, "content": "rain"},
    ]
    assert len({"toolu_01", second, third}) == 3


def test_ids_are_the_same_every_time_and_short_where_a_server_insists() -> None:
    """CHAIN-15."""
    request = ModelRequest(model="m", messages=TRANSCRIPT)
    bodies = [body_of(request, short_call_ids=True)["messages"] for _ in range(2)]
    assert bodies[0] == bodies[1]
    ids = [call["id"] for m in bodies[0] for call in m.get("tool_calls", ())]
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
    assert [m["tool_call_id"] for m in bodies[0] if m["role"] == "tool"] == ids


def test_options_and_tools_are_asked_for_and_provider_settings_replace_nothing() -> None:
    """CHAIN-5."""
    options = ModelOptions(temperature=0.5, top_p=0.9, max_output_tokens=99, stop=("END",), seed=7)
    settings = {"model": "other", "messages": [], "stream": True, "service_tier": "flex", "temperature": 1}
    request = ModelRequest(
        model="m", messages=TRANSCRIPT[1:2], tools=(TOOL,), options=options, provider_settings=settings
    )
    assert body_of(request, max_tokens_field="max_completion_tokens") == {
        "model": "m",
        "messages": [{"role": "user", "content": "Weather?"}],
        "stream": False,
        "service_tier": "flex",
        "temperature": 0.5,
        "top_p": 0.9,
        "max_completion_tokens": 99,
        "stop": ["END"],
        "seed": 7,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "description": "The weather.",
                    "parameters": {"type": "object"},
                },
            }
        ],
    }


def test_nothing_is_asked_for_that_nobody_wanted() -> None:
    assert body_of(ModelRequest(model="m", messages=(UserMessage(content="Hi"),))) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": False,
    }


def test_a_stream_asks_for_its_usage_unless_the_server_refuses_to_be_asked() -> None:
    request = ModelRequest(model="m", messages=())
    assert body_of(request, stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body_of(request, stream=True, stream_usage=False)


def test_instructions_take_the_role_of_the_settings() -> None:
    request = ModelRequest(model="m", messages=TRANSCRIPT[:1], instructions="You help.")
    roles = [m["role"] for m in body_of(request, instructions_role="developer")["messages"]]
    assert roles == ["developer", "developer"]
