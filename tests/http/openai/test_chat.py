"""Chat completions, as OpenAI's own client has them."""

from datetime import datetime
from typing import Any

import pytest
from pydantic import BaseModel

from tests.http.openai.asking import ask
from tests.http.openai.conftest import Host

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Weather(BaseModel):
    city: str
    degrees: int


async def test_a_run_is_a_completion_of_the_model_that_is_its_agent(shared: Host) -> None:
    raw = await shared.ai.chat.completions.with_raw_response.create(model="story", messages=ask("Tell me"))
    completion = raw.parse()
    run = (await shared.http.get(f"/tracon/api/runs/{raw.headers['x-run-id']}")).body
    assert completion.id == f"chatcmpl-{run['id'].replace('-', '')}"
    assert (completion.model, completion.object) == ("story", "chat.completion")
    assert completion.created == int(timestamp(run["created_at"]))
    [choice] = completion.choices
    assert (choice.index, choice.finish_reason) == (0, "stop")
    assert (choice.message.role, choice.message.content) == ("assistant", "Once upon a time.")
    assert raw.headers["x-request-id"]
    assert raw.headers["content-type"].startswith("application/json")


async def test_a_stream_says_the_same_piece_by_piece(shared: Host) -> None:
    stream = await shared.ai.chat.completions.create(model="story", messages=ask(), stream=True)
    chunks = [chunk async for chunk in stream]
    assert {(chunk.id, chunk.model, chunk.created, chunk.object) for chunk in chunks} == {
        (chunks[0].id, "story", chunks[0].created, "chat.completion.chunk")
    }
    first, *_, last = (chunk.choices[0] for chunk in chunks)
    assert (first.delta.role, first.delta.content) == ("assistant", "")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Once upon a time."
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert last.delta.content is None
    assert all(chunk.usage is None for chunk in chunks)


async def test_a_stream_ends_with_done(shared: Host) -> None:
    asked = {"model": "story", "messages": ask(), "stream": True}
    answer = await shared.http.request("POST", "/tracon/v1/chat/completions", json=asked)
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert answer.body.count(b"[DONE]") == 1


async def test_the_usage_of_all_steps_is_summed(shared: Host) -> None:
    completion = await shared.ai.chat.completions.create(model="priced", messages=ask())
    usage = completion.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.completion_tokens_details is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (30, 7, 37)
    assert usage.prompt_tokens_details.cached_tokens == 2
    assert usage.completion_tokens_details.reasoning_tokens == 1


async def test_usage_is_the_last_chunk_of_a_stream_that_asks_for_it(shared: Host) -> None:
    stream = await shared.ai.chat.completions.create(
        model="priced", messages=ask(), stream=True, stream_options={"include_usage": True}
    )
    *before, last = [chunk async for chunk in stream]
    assert all(chunk.usage is None and "usage" in chunk.model_fields_set for chunk in before)
    assert (last.choices, last.usage and last.usage.total_tokens) == ([], 37)


async def test_what_tools_do_stays_here(shared: Host) -> None:
    """The content is the answer. A stream has had to say before that what was said on the way."""
    completion = await shared.ai.chat.completions.create(model="helper", messages=ask())
    assert completion.choices[0].message.content == "It is raining."
    assert completion.choices[0].message.tool_calls is None
    async with shared.ai.chat.completions.stream(model="helper", messages=ask()) as stream:
        streamed = await stream.get_final_completion()
    assert streamed.choices[0].message.content == "Let me look.\n\nIt is raining."
    assert streamed.choices[0].message.tool_calls is None


async def test_options_stand_above_the_agents_and_are_on_record(shared: Host) -> None:
    raw = await shared.ai.chat.completions.with_raw_response.create(
        model="echo",
        messages=ask(),
        temperature=0.25,
        top_p=0.5,
        max_completion_tokens=99,
        stop=["END"],
        seed=7,
    )
    created, started, *_ = await shared.events(raw.headers["x-run-id"])
    options = {"temperature": 0.25, "top_p": 0.5, "max_output_tokens": 99, "stop": ["END"], "seed": 7}
    assert created["data"]["overrides"] == {"options": options}
    assert started["data"]["definition"]["options"] == options


async def test_a_run_without_options_of_its_own_overrides_nothing(shared: Host) -> None:
    raw = await shared.ai.chat.completions.with_raw_response.create(
        model="echo", messages=ask(), temperature=None, stop=None, tools=[], n=1, logprobs=False
    )
    created, *_ = await shared.events(raw.headers["x-run-id"])
    assert created["data"]["overrides"] is None


async def test_hints_are_taken_and_change_nothing(shared: Host) -> None:
    hints: dict[str, Any] = {
        "user": "u",
        "store": True,
        "service_tier": "flex",
        "reasoning_effort": "low",
        "verbosity": "low",
        "parallel_tool_calls": False,
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "metadata": {"ticket": "7"},
        "frequency_penalty": 0,
        "presence_penalty": 0.0,
        "logit_bias": {},
        "tool_choice": "auto",
        "modalities": ["text"],
        "response_format": {"type": "text"},
    }
    completion = await shared.ai.chat.completions.create(model="echo", messages=ask("hi"), **hints)
    assert completion.choices[0].message.content == "hi"


async def test_an_answer_longer_than_was_asked_for_is_not_carried_on(shared: Host) -> None:
    """CHAIN-8: a limit of the caller's is one of the answer, not of each call."""
    raw = await shared.ai.chat.completions.with_raw_response.create(
        model="endless", messages=ask(), max_tokens=3
    )
    [choice] = raw.parse().choices
    assert (choice.finish_reason, choice.message.content) == ("length", "On and on")
    events = await shared.events(raw.headers["x-run-id"])
    assert [event["type"] for event in events].count("ModelReplied") == 1


async def test_an_answer_that_is_carried_on_is_one_text(shared: Host) -> None:
    """CHAIN-8"""
    whole = await shared.ai.chat.completions.create(model="long", messages=ask())
    stream = await shared.ai.chat.completions.create(model="long", messages=ask(), stream=True)
    told = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert whole.choices[0].message.content == "".join(told) == "On and on it went."


@pytest.mark.parametrize("model", ["weather", "corrected"])
async def test_an_answer_can_be_asked_for_in_a_form(shared: Host, model: str) -> None:
    """CHAIN-9"""
    completion = await shared.ai.chat.completions.parse(model=model, messages=ask(), response_format=Weather)
    assert completion.choices[0].message.parsed == Weather(city="Oslo", degrees=4)


@pytest.mark.parametrize("model", ["weather", "corrected"])
async def test_a_stream_in_a_form_says_nothing_that_does_not_have_it(shared: Host, model: str) -> None:
    """CHAIN-9: a first answer that had to be corrected cannot be taken back, so it is not told."""
    async with shared.ai.chat.completions.stream(
        model=model, messages=ask(), response_format=Weather
    ) as stream:
        completion = await stream.get_final_completion()
    assert completion.choices[0].message.parsed == Weather(city="Oslo", degrees=4)


async def test_a_form_may_have_fields_by_the_names_of_keywords(shared: Host) -> None:
    schema: Any = {
        "properties": {"pattern": {"type": "string"}, "city": {"enum": ["Oslo", {"pattern": "x"}]}}
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "w", "schema": schema}}
    completion = await shared.ai.chat.completions.create(
        model="weather", messages=ask(), response_format=form
    )
    assert completion.choices[0].finish_reason == "stop"


async def test_any_json_object_can_be_asked_for(shared: Host) -> None:
    raw = await shared.ai.chat.completions.with_raw_response.create(
        model="weather", messages=ask(), response_format={"type": "json_object"}
    )
    created, *_ = await shared.events(raw.headers["x-run-id"])
    assert created["data"]["overrides"]["response_schema"] == {"type": "object"}


async def test_messages_of_all_roles_reach_the_run(shared: Host) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "Be kind."},
        {
            "role": "developer",
            "content": [{"type": "text", "text": text} for text in ("Be", "brief.")],
        },
        {"role": "user", "content": "Is it raining?", "name": "ann"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "assistant", "content": "Yes.", "refusal": None, "annotations": []},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
    ]
    raw = await shared.ai.chat.completions.with_raw_response.create(model="echo", messages=messages)
    assert raw.parse().choices[0].message.content == "Thanks."
    told = (await shared.http.get(f"/tracon/api/runs/{raw.headers['x-run-id']}/input")).body
    assert told["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "system", "content": "Be\nbrief."},
        {"role": "user", "content": "Is it raining?"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "name": "look", "arguments": "{}"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "assistant", "content": "Yes."},
        {"role": "assistant", "content": "I will not."},
        {"role": "user", "content": "Thanks."},
    ]


async def test_an_answer_can_be_sent_back_as_it_came(shared: Host) -> None:
    first = await shared.ai.chat.completions.create(model="story", messages=ask())
    said: Any = first.choices[0].message.model_dump()
    again = await shared.ai.chat.completions.create(model="echo", messages=[*ask(), said, *ask("And then?")])
    assert again.choices[0].message.content == "And then?"


async def test_a_session_is_named_by_a_label(shared: Host) -> None:
    """One conversation over several requests, in which each sends only what is new."""
    labels = {"session_id": "chat-1", "ticket": "7"}
    for _ in range(2):
        raw = await shared.ai.chat.completions.with_raw_response.create(
            model="echo", messages=ask("hi"), metadata=labels
        )
    created, started, *_ = await shared.events(raw.headers["x-run-id"])
    assert created["data"]["session_id"] == "chat-1"
    assert created["data"]["origin"] == {"api": "openai.chat", "echo": {"metadata": labels}}
    assert started["data"]["session_version"] > 0


def timestamp(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def test_what_was_asked_over_the_agents_own_is_shown_with_what_the_run_was_given(shared: Host) -> None:
    """HTTP-5"""
    asked = await shared.ai.chat.completions.with_raw_response.create(
        model="weather",
        messages=[{"role": "system", "content": "Be brief."}, *ask()],
        temperature=0,
        max_tokens=7,
        stop="END",
        response_format={"type": "json_schema", "json_schema": {"name": "w", "schema": {"type": "object"}}},
    )
    plain = await shared.ai.chat.completions.with_raw_response.create(model="weather", messages=ask())
    shown, none = [
        (await shared.http.get(f"/tracon/api/runs/{raw.headers['x-run-id']}/input")).body["overrides"]
        for raw in (asked, plain)
    ]
    assert shown == {
        "options": {"temperature": 0.0, "max_output_tokens": 7, "stop": ["END"]},
        "response_schema": {"type": "object"},
    }
    assert none is None
