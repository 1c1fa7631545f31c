"""Responses, as OpenAI's own client has them."""

from typing import Any

import openai
import pytest
from openai.types.responses import Response
from pydantic import BaseModel

from tests.http.openai.conftest import Host

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Weather(BaseModel):
    city: str
    degrees: int


def run_of(response: Response) -> str:
    return response.id.removeprefix("resp_")


async def test_a_run_is_a_response_of_the_model_that_is_its_agent(shared: Host) -> None:
    raw = await shared.ai.responses.with_raw_response.create(model="story", input="Tell me.")
    response = raw.parse()
    run = (await shared.http.get(f"/tracon/api/runs/{raw.headers['x-run-id']}")).body
    assert response.id == f"resp_{run['id'].replace('-', '')}"
    assert (response.object, response.model, response.status) == ("response", "story", "completed")
    assert response.output_text == "Once upon a time."
    [message] = response.output
    assert message.type == "message"
    assert (message.role, message.status, message.phase) == ("assistant", "completed", "final_answer")
    assert response.usage is not None
    assert response.usage.total_tokens == run["usage"]["input_tokens"] + run["usage"]["output_tokens"]
    assert (response.error, response.incomplete_details) == (None, None)


async def test_a_response_can_be_read_again(shared: Host) -> None:
    response = await shared.ai.responses.create(model="story", input="Tell me.", metadata={"ticket": "7"})
    assert await shared.ai.responses.retrieve(response.id) == response
    assert response.metadata == {"ticket": "7"}


async def test_a_response_says_again_what_was_asked(shared: Host) -> None:
    asked: dict[str, Any] = {
        "instructions": "In German.",
        "temperature": 0.25,
        "top_p": 0.5,
        "max_output_tokens": 99,
        "truncation": "auto",
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "k",
    }
    response = await shared.ai.responses.create(model="echo", input="hi", **asked)
    assert {name: getattr(response, name) for name in asked} == asked
    assert (response.tools, response.tool_choice, response.previous_response_id) == ([], "auto", None)
    _, started, *_ = await shared.events(run_of(response))
    definition = started["data"]["definition"]
    assert definition["instructions"] == "Answer.\n\nIn German."
    assert definition["options"] == {"temperature": 0.25, "top_p": 0.5, "max_output_tokens": 99}


async def test_what_is_said_on_the_way_is_commentary(shared: Host) -> None:
    """What tools do stays with the run."""
    response = await shared.ai.responses.create(model="helper", input="Well?")
    output: list[Any] = response.output
    said = [(item.type, item.phase, item.content[0].text) for item in output]
    assert said == [
        ("message", "commentary", "Let me look."),
        ("message", "final_answer", "It is raining."),
    ]


async def test_the_usage_of_all_steps_is_summed(shared: Host) -> None:
    usage = (await shared.ai.responses.create(model="priced", input="Well?")).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (30, 7, 37)
    assert usage.input_tokens_details.cached_tokens == 2
    assert usage.output_tokens_details.reasoning_tokens == 1


@pytest.mark.parametrize("model", ["weather", "corrected"])
async def test_an_answer_can_be_asked_for_in_a_form(shared: Host, model: str) -> None:
    """CHAIN-9"""
    response = await shared.ai.responses.parse(model=model, input="Well?", text_format=Weather)
    assert response.output_parsed == Weather(city="Oslo", degrees=4)
    assert len(response.output) == 1
    told: Any = response.text
    assert (told.format.type, told.format.name) == ("json_schema", "Weather")


async def test_an_answer_that_its_limit_ended_is_incomplete(shared: Host) -> None:
    """CHAIN-8"""
    response = await shared.ai.responses.create(model="endless", input="Well?", max_output_tokens=3)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text == "On and on"


async def test_items_of_all_kinds_reach_the_run(shared: Host) -> None:
    items: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "Is it raining?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "snow"}]},
        {"type": "message", "role": "user", "content": "Well?"},
    ]
    response = await shared.ai.responses.create(model="echo", input=items)
    told = (await shared.http.get(f"/tracon/api/runs/{run_of(response)}/input")).body
    calls = [{"id": name, "name": "look", "arguments": "{}"} for name in ("c1", "c2")]
    assert told["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it raining?"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "tool", "tool_call_id": "c2", "content": "snow"},
        {"role": "user", "content": "Well?"},
    ]


async def test_output_can_be_sent_back_as_it_came(shared: Host) -> None:
    first = await shared.ai.responses.create(model="helper", input="Well?")
    output: Any = [item.model_dump() for item in first.output]
    items: Any = [{"role": "user", "content": "Well?"}, *output, {"role": "user", "content": "Thanks."}]
    assert (await shared.ai.responses.create(model="echo", input=items)).output_text == "Thanks."


async def test_a_response_that_is_not_to_be_stored_cannot_be_read_again(shared: Host) -> None:
    response = await shared.ai.responses.create(model="echo", input="hi", store=False)
    for attempt in (
        shared.ai.responses.retrieve(response.id),
        shared.ai.responses.cancel(response.id),
        shared.ai.responses.create(model="echo", input="again", previous_response_id=response.id),
    ):
        with pytest.raises(openai.NotFoundError):
            await attempt
    assert (await shared.http.get(f"/tracon/api/runs/{run_of(response)}")).status == 200


async def test_only_what_was_a_response_is_one(shared: Host) -> None:
    completion = await shared.ai.chat.completions.create(
        model="echo", messages=[{"role": "user", "content": "hi"}]
    )
    for name in (completion.id.replace("chatcmpl-", "resp_"), completion.id, "resp_", "resp_7", "x"):
        with pytest.raises(openai.NotFoundError) as caught:
            await shared.ai.responses.retrieve(name)
        assert caught.value.code == "response_not_found"


@pytest.mark.parametrize(
    ("agent", "kind", "code"),
    [
        ("failing", openai.InternalServerError, "provider_unavailable"),
        ("rejecting", openai.UnprocessableEntityError, "provider_rejected"),
        ("filtered", openai.UnprocessableEntityError, "content_filtered"),
        ("nobody", openai.NotFoundError, "model_not_found"),
    ],
)
async def test_a_run_without_an_answer_is_an_exception(
    shared: Host, agent: str, kind: type[openai.APIStatusError], code: str
) -> None:
    """HTTP-1"""
    with pytest.raises(kind) as caught:
        await shared.ai.responses.create(model=agent, input="Well?")
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("agent", "status", "why"),
    [
        ("failing", "failed", "server_error"),
        ("rejecting", "failed", "invalid_prompt"),
        ("filtered", "incomplete", "content_filter"),
    ],
)
async def test_a_run_that_failed_can_be_read_as_a_response_that_did(
    shared: Host, agent: str, status: str, why: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await shared.ai.responses.create(model=agent, input="Well?")
    run_id = caught.value.response.headers["x-run-id"]
    response = await shared.ai.responses.retrieve("resp_" + run_id.replace("-", ""))
    assert response.status == status
    assert why == (response.error.code if response.error else reason(response))
    assert response.output == []


def reason(response: Response) -> str | None:
    return response.incomplete_details.reason if response.incomplete_details else None
