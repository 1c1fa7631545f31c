"""The upstream's OpenAI Responses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.upstream.family import Answer, Call, Spent
from tests.upstream.wire import json_bytes, sse

_THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ZW5jcnlwdGVk"}


class ResponsesFamily:
    name = "responses"

    def wants_stream(self, path: str, body: Mapping[str, Any]) -> bool:
        return bool(body.get("stream"))

    def model(self, path: str, body: Mapping[str, Any]) -> str:
        return str(body["model"])

    def whole(self, model: str, answer: Answer) -> bytes:
        return json_bytes(_response(model, answer))

    def preamble(self, model: str) -> list[bytes]:
        started = _head(model) | {"status": "in_progress", "output": []}
        return [
            _event("response.created", {"response": started}),
            _event("response.in_progress", {"response": started}),
        ]

    def reasoning(self, model: str) -> list[bytes]:
        return [
            _event("response.output_item.added", {"output_index": 0, "item": _THOUGHT}),
            _event(
                "response.reasoning_summary_text.delta", _place(0) | {"summary_index": 0, "delta": "Hmm."}
            ),
            _event("response.output_item.done", {"output_index": 0, "item": _THOUGHT}),
        ]

    def text(self, model: str, text: str, before: str) -> bytes:
        opening = b""
        if not before:
            part = {"type": "output_text", "text": "", "annotations": []}
            opening = _event("response.output_item.added", {"output_index": 1, "item": _message("")})
            opening += _event("response.content_part.added", _place(1) | {"part": part})
        return opening + _event("response.output_text.delta", _place(1) | {"delta": text, "logprobs": []})

    def calls(self, model: str, calls: Sequence[Call]) -> list[bytes]:
        return [event for index, call in enumerate(calls, 2) for event in _call_events(index, call)]

    def finish(self, model: str, answer: Answer) -> list[bytes]:
        response = _response(model, answer)
        done = b""
        if answer.text:
            done = _event("response.output_text.done", _place(1) | {"text": answer.text, "logprobs": []})
            item = {"output_index": 1, "item": _message(answer.text)}
            done += _event("response.output_item.done", item)
        return [done + _event(f"response.{response['status']}", {"response": response})]

    def terminator(self) -> list[bytes]:
        return []

    def error_event(self, status: int, code: str, message: str) -> bytes:
        return _event("error", {"code": code, "message": message, "param": None})

    def error_body(self, status: int, code: str, message: str) -> bytes:
        return json_bytes({"error": {"message": message, "type": code, "param": None, "code": code}})


def _event(name: str, fields: Mapping[str, Any]) -> bytes:
    return sse({"type": name, "sequence_number": 0, **fields}, name)


def _place(index: int) -> dict[str, Any]:
    return {"item_id": f"item_{index}", "output_index": index, "content_index": 0}


def _head(model: str) -> dict[str, Any]:
    return {
        "id": "resp_upstream",
        "object": "response",
        "created_at": 1795990902,
        "model": model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _response(model: str, answer: Answer) -> dict[str, Any]:
    output: list[dict[str, Any]] = [_THOUGHT] if answer.reasoned else []
    if answer.text:
        output.append(_message(answer.text))
    output += [_item(call) for call in answer.calls]
    why = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.reason)
    ended = (
        {"status": "incomplete", "incomplete_details": {"reason": why}} if why else {"status": "completed"}
    )
    return _head(model) | ended | {"output": output, "usage": _usage(answer.spent)}


def _message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}] if text else []
    return {"id": "item_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _item(call: Call) -> dict[str, Any]:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _call_events(index: int, call: Call) -> Iterator[bytes]:
    item, half = _item(call), len(call.arguments) // 2
    opened = {"output_index": index, "item": item | {"arguments": "", "status": "in_progress"}}
    yield _event("response.output_item.added", opened)
    for piece in (call.arguments[:half], call.arguments[half:]):
        yield _event("response.function_call_arguments.delta", _place(index) | {"delta": piece})
    done = _place(index) | {"arguments": call.arguments, "name": call.name}
    yield _event("response.function_call_arguments.done", done)
    yield _event("response.output_item.done", {"output_index": index, "item": item})


def _usage(spent: Spent) -> dict[str, Any]:
    return {
        "input_tokens": spent.input,
        "input_tokens_details": {"cached_tokens": spent.cached, "cache_write_tokens": 0},
        "output_tokens": spent.output,
        "output_tokens_details": {"reasoning_tokens": spent.reasoning},
        "total_tokens": spent.input + spent.output,
    }
