"""The rules of each wire, as its provider enforces them: what a body may not look like."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from app.models.provider_settings import ProviderType

Calls = list[tuple[str, str, Any]]
"""Id, name and arguments of every tool call, in order. A check returns these, and the ids with a result."""


def check_chat(body: dict[str, Any]) -> tuple[Calls, list[str]]:
    calls: Calls = []
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            function = call["function"]
            calls.append((call["id"], function["name"], json.loads(function["arguments"])))
    ids = [call_id for call_id, _, _ in calls]
    assert len(set(ids)) == len(ids)
    assert all(1 <= len(call_id) <= 40 and " " not in call_id for call_id in ids)
    return calls, [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]


def check_responses(body: dict[str, Any]) -> tuple[Calls, list[str]]:
    items = body["input"]
    calls = [
        (item["call_id"], item["name"], json.loads(item["arguments"]))
        for item in items
        if item.get("type") == "function_call"
    ]
    assert len({call_id for call_id, _, _ in calls}) == len(calls)
    assert body["store"] is False
    return calls, [item["call_id"] for item in items if item.get("type") == "function_call_output"]


def check_messages(body: dict[str, Any]) -> tuple[Calls, list[str]]:
    turns = body["messages"]
    assert turns[0]["role"] == "user"
    assert all(a["role"] != b["role"] for a, b in pairwise(turns))
    assert body["max_tokens"] > 0
    assert "Be brief." not in json.dumps(turns)
    blocks = [block for turn in turns for block in turn["content"]]
    assert all(turn["content"] for turn in turns)
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    if turns[-1]["role"] == "assistant":
        last = turns[-1]["content"][-1].get("text", "")
        assert last == last.rstrip()
    for turn in turns:
        kinds = [block["type"] for block in turn["content"] if turn["role"] == "user"]
        assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result"), "results come first"
    calls = [(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
    assert len({call_id for call_id, _, _ in calls}) == len(calls)
    assert all(call_id.replace("_", "").replace("-", "").isalnum() for call_id, _, _ in calls)
    failed = [b["tool_use_id"] for b in blocks if b.get("is_error")]
    assert not calls or failed[0] == calls[1][0], "the second call failed, in every conversation here"
    return calls, [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]


def check_gemini(body: dict[str, Any]) -> tuple[Calls, list[str]]:
    """Results have names in place of ids: a turn answers the calls of the one before it, in order."""
    turns = body["contents"]
    assert turns[0]["role"] == "user"
    assert all(a["role"] != b["role"] for a, b in pairwise(turns))
    assert all(turn["parts"] for turn in turns)
    assert "Be brief." not in json.dumps(turns)
    calls: Calls = []
    results: list[str] = []
    for place, turn in enumerate(turns):
        for index, part in enumerate(turn["parts"]):
            if call := part.get("functionCall"):
                assert part["thoughtSignature"], "newer models refuse a call without one"
                calls.append((f"{place + 1}.{index}.{call['name']}", call["name"], call["args"]))
    for place, turn in enumerate(turns):
        answered = [part["functionResponse"] for part in turn["parts"] if "functionResponse" in part]
        asked = [call_id for call_id, _, _ in calls if call_id.startswith(f"{place}.")]
        results += asked if [a["name"] for a in answered] == [c.rpartition(".")[2] for c in asked] else ["?"]
        assert all(isinstance(a["response"], dict) and "id" not in a for a in answered)
    return calls, results


CHECKS: dict[ProviderType, Callable[[dict[str, Any]], tuple[Calls, list[str]]]] = {
    "openai": check_chat,
    "openai_responses": check_responses,
    "anthropic": check_messages,
    "google": check_gemini,
}
