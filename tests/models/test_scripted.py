"""The scripted provider does what it is told, call by call."""

import asyncio
import tomllib
from typing import Any

import msgspec
import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.http import HttpSession
from app.models.patience import TimeLimits
from app.models.port import ModelAdapter, ModelRequest
from app.models.provider_settings import ProviderSettings
from app.models.scripted_settings import Behaviour, in_words
from domain.failure import FailureClass
from domain.messages import AssistantMessage, Message, ToolCall, ToolMessage, Usage, UserMessage
from tests.models.calling import Answered, Failed, asking, completed, failure_of, streamed

ASKED = UserMessage(content="How far is the moon?")
CALL = ToolCall(id="a", name="measure", arguments="{}")
CALLED = (ASKED, AssistantMessage(tool_calls=(CALL,)), ToolMessage(tool_call_id="a", content="384,400 km"))


def scripted(toml: str, http: HttpSession | None = None) -> ModelAdapter:
    settings = msgspec.convert(tomllib.loads(f"type = 'scripted'\n[models.m]\n{toml}"), ProviderSettings)
    return build(Account("demo"), settings, http or HttpSession(TimeLimits(idle_s=0.1, call_s=5)), {})


def about(*messages: Message, **fields: Any) -> ModelRequest:
    return asking("m", messages=messages, **fields)


async def test_the_script_is_consumed_one_per_call_and_then_the_default_holds() -> None:
    adapter = scripted(
        """
        script = [{text = "one"}, {status = 503, repeat = 2}, {text = "four"}]
        default = {text = "always"}
        """
    )
    outcomes = [await streamed(adapter, about(ASKED)) for _ in range(6)]
    unavailable = Failed(kind="status", status=503, failure_class=FailureClass.UNAVAILABLE)
    texts = [Answered(text=text) for text in ("one", "four", "always", "always")]
    assert outcomes == [texts[0], unavailable, unavailable, *texts[1:]]


async def test_concurrent_calls_share_the_script() -> None:
    adapter = scripted('script = [{text = "one"}, {text = "two"}, {text = "three"}]')
    outcomes = await asyncio.gather(*(completed(adapter, about(ASKED)) for _ in range(3)))
    assert {outcome.text for outcome in outcomes if isinstance(outcome, Answered)} == {"one", "two", "three"}


async def test_a_list_as_default_is_entered_at_the_replies_of_the_turn() -> None:
    """So that "call the tool, then use its result" works for every run."""
    adapter = scripted(
        'default = [{tool_call = {name = "measure"}}, {last_tool_result = "It is {result} away."}]'
    )
    earlier = (ASKED, AssistantMessage(content="Far."))
    for before in ((), earlier, earlier * 3):
        first = await streamed(adapter, about(*before, ASKED))
        second = await streamed(adapter, about(*before, *CALLED))
        third = await streamed(adapter, about(*before, *CALLED, *CALLED[1:]))
        assert first == Answered(calls=(("measure", "{}"),), finish="tool_calls")
        assert second == third == Answered(text="It is 384,400 km away.")


@pytest.mark.parametrize(
    ("behaviour", "text"),
    [
        ("echo = true", "How far is the moon?"),
        ('echo = "You said: {message}"', "You said: How far is the moon?"),
        ("last_tool_result = true", "384,400 km"),
    ],
)
async def test_what_was_said_and_what_a_tool_gave_can_be_repeated(behaviour: str, text: str) -> None:
    adapter = scripted(f"default = {{{behaviour}}}")
    assert await streamed(adapter, about(*CALLED)) == Answered(text=text)


async def test_without_anything_to_repeat_the_answer_is_empty() -> None:
    adapter = scripted("default = {last_tool_result = true}")
    empty = Failed(kind="empty", failure_class=FailureClass.EMPTY)
    assert await streamed(adapter, about(ASKED)) == empty


async def test_text_is_streamed_word_by_word_and_chunks_as_given() -> None:
    adapter = scripted('script = [{text = "one  two\\nthree "}, {chunks = ["on", "e t", "wo"]}]')
    for expected in (["one", "  two", "\nthree "], ["on", "e t", "wo"]):
        parts = [part async for part in adapter.stream(about(ASKED))]
        assert [getattr(part, "text", None) for part in parts] == [*expected, None]


async def test_chunks_keep_their_pace() -> None:
    adapter = scripted('default = {text = "a b c", first_delay = 0.05, delay = 0.02}')
    began = asyncio.get_running_loop().time()
    assert await completed(adapter, about(ASKED)) == Answered(text="a b c")
    assert asyncio.get_running_loop().time() - began >= 0.09


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        ('text = "a b", first_delay = 9', Failed(kind="silent", failure_class=FailureClass.UNAVAILABLE)),
        (
            'text = "a b", delay = 9',
            Failed(kind="stalled", failure_class=FailureClass.TRANSIENT, delivered="a"),
        ),
        ('stall_after = 0, text = "a"', Failed(kind="silent", failure_class=FailureClass.UNAVAILABLE)),
    ],
)
async def test_a_pace_that_is_too_slow_is_the_failure_that_it_is_over_http(
    behaviour: str, outcome: Failed
) -> None:
    """CLASS-2."""
    adapter = scripted(f"default = {{{behaviour}}}")
    assert await streamed(adapter, about(ASKED, first_content_timeout_s=0.1)) == outcome


async def test_usage_counts_words_unless_it_is_given() -> None:
    adapter = scripted(
        """
        script = [{text = "one two three"}, {text = "x", usage = {input_tokens = 9, cached_input_tokens = 4}}]
        """
    )
    request = about(ASKED, instructions="Be brief.")
    assert (await adapter.complete(request)).usage == Usage(input_tokens=7, output_tokens=3)
    assert (await adapter.complete(request)).usage == Usage(input_tokens=9, cached_input_tokens=4)


async def test_ids_of_calls_are_as_given_or_never_the_same() -> None:
    adapter = scripted(
        'script = [{tool_call = {name = "f", id = "mine"}}]\ndefault = {tool_call = {name = "f"}}'
    )
    ids = [(await adapter.complete(about(ASKED))).message.tool_calls[0].id for _ in range(3)]
    assert ids[0] == "mine"
    assert len(set(ids)) == 3


async def test_arguments_may_be_broken_on_purpose() -> None:
    adapter = scripted("""default = {tool_call = {name = "f", arguments = "{broken"}}""")
    assert await completed(adapter, about(ASKED)) == Answered(calls=(("f", "{broken"),), finish="tool_calls")


async def test_headers_of_a_status_are_read_like_any_others() -> None:
    adapter = scripted(
        """
        [[models.m.script]]
        status = {status = 429, headers = {"Retry-After-Ms" = "1500"}, code = "slow_down", message = "busy"}
        [[models.m.script]]
        status = {status = 503, headers = {date = "Sun, 29 Nov 2026 22:00:00 GMT"},
                  retry_after = "Sun, 29 Nov 2026 22:00:07 GMT"}
        """.replace(",\n", ",")
    )
    limited, down = [await failure_of(adapter, about(ASKED)) for _ in range(2)]
    assert (limited.retry_after_s, limited.code) == (1.5, "slow_down")
    assert "busy" in limited.message
    assert down.retry_after_s == 7


async def test_a_model_that_is_not_declared_is_not_found() -> None:
    failure = await failure_of(scripted("script = []"), asking("other"))
    assert (failure.status, failure.code) == (404, "model_not_found")


async def test_a_silent_call_can_be_cancelled_and_closed() -> None:
    adapter = scripted("default = {silent = true}")
    request = about(ASKED, first_content_timeout_s=None)
    first, second = (asyncio.create_task(completed(adapter, request)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await adapter.close()
    assert await second == Failed(kind="internal", failure_class=FailureClass.INTERNAL)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("", "this is none"),
        ('text = "a", status = 500', "this is text and status"),
        ('text = "a", chunks = ["b"]', "this is text and chunks"),
        ("reset = true, silent = true", "this is reset and silent"),
        ('text = "a", chunks = ["b"], cut_after = 1', "this is text and chunks and cut_after"),
        ("cut_after = 2", "cut_after needs the text or chunks that it comes after"),
        ("status = 200", "status must be from 300 to 599"),
        ("status = {status = 700}", "599"),
        ("status = {status = 429, retry_after = -1.0}", "retry_after"),
        ('echo = "no placeholder"', "{message}"),
        ('last_tool_result = "no placeholder"', "{result}"),
        ("tool_calls = []", "tool_calls is empty"),
        ('chunks = ["a", ""]', "an empty chunk"),
        ("reset = true, delay = 1", "delay and first_delay go with text, not with reset"),
        ('text = "a", repeat = 0', "repeat"),
        ('text = "a", wait = 1', "wait"),
        ('tool_call = {name = ""}', "name"),
        ('tool_call = {nam = "x"}', "nam"),
    ],
)
def test_a_behaviour_that_makes_no_sense_is_refused_with_its_place(behaviour: str, reason: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        scripted(f'script = [{{text = "fine"}}, {{{behaviour}}}]')
    assert reason in str(caught.value)
    assert "script[1]" in str(caught.value)


def test_words_are_the_text_again() -> None:
    for text in ("", " ", "a", " a  b\n", "a b", "\n\n a"):
        assert "".join(in_words(text)) == text
        assert all(in_words(text))


def test_the_text_of_a_behaviour_is_its_words_or_its_chunks() -> None:
    assert Behaviour(text="a b").pieces == ("a", " b")
    assert Behaviour(chunks=("a b",)).pieces == ("a b",)
    assert Behaviour(reset=True).pieces == ()
