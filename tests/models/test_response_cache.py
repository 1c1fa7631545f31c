"""Replies that are given again, and to whom (BREAK-3)."""

from typing import Any

import msgspec
import pytest

from app.models.port import ModelReply, ModelRequest, ToolSpec
from app.models.response_cache import ResponseCache, cache_key
from app.settings import ResponseCacheSettings
from domain.agent import ModelOptions
from domain.events import FinishReason
from domain.messages import AssistantMessage, ProviderBlocks, UserMessage
from tests.models.clock import Clock

REQUEST = ModelRequest(model="small", messages=(UserMessage(content="Hello?"),))
REPLY = ModelReply(message=AssistantMessage(content="Hello."), finish=FinishReason.STOP)
KEY = cache_key("acme", "primary", REQUEST)


def changed(**fields: Any) -> bytes:
    return cache_key("acme", "primary", msgspec.structs.replace(REQUEST, **fields))


def test_the_very_same_request_has_the_same_key() -> None:
    again = ModelRequest(model="small", messages=(UserMessage(content="Hello?"),))
    assert cache_key("acme", "primary", again) == KEY
    assert changed(provider_settings={"a": 1, "b": 2}) == changed(provider_settings={"b": 2, "a": 1})


def test_a_time_limit_is_no_part_of_the_question() -> None:
    assert changed(first_content_timeout_s=3.0) == KEY


@pytest.mark.parametrize(
    "other",
    [
        cache_key("evil", "primary", REQUEST),
        cache_key("acme", "backup", REQUEST),
        changed(model="big"),
        changed(messages=(UserMessage(content="Hello!"),)),
        changed(messages=(*REQUEST.messages, AssistantMessage(content="Hi"))),
        changed(
            messages=(
                AssistantMessage(
                    content="Hi",
                    provider_blocks=ProviderBlocks(provider="p", blocks=(msgspec.Raw(b'{"a":1}'),)),
                ),
            )
        ),
        changed(instructions="Be brief."),
        changed(tools=(ToolSpec(name="look", description="", parameters={}),)),
        changed(options=ModelOptions(temperature=0.5)),
        changed(response_schema={"type": "object"}),
        changed(provider_settings={"effort": "high"}),
    ],
    ids=[
        "tenant",
        "provider",
        "model",
        "message",
        "one more message",
        "blocks",
        "instructions",
        "tools",
        "options",
        "schema",
        "provider settings",
    ],
)
def test_whatever_a_reply_depends_on_is_part_of_the_key(other: bytes) -> None:
    """BREAK-3; C36: nothing is shared between tenants."""
    assert other != KEY


def test_a_reply_is_kept_for_a_while() -> None:
    clock = Clock()
    cache = ResponseCache(ResponseCacheSettings(ttl=60.0), clock)
    cache.keep(KEY, REPLY)
    clock.pass_(59.0)
    assert cache.find(KEY) == REPLY
    clock.pass_(2.0)
    assert cache.find(KEY) is None


def test_no_more_replies_are_kept_than_there_is_room_for() -> None:
    cache = ResponseCache(ResponseCacheSettings(max_entries=2))
    keys = [cache_key(str(number), "primary", REQUEST) for number in range(3)]
    for key in keys:
        cache.keep(key, REPLY)
    assert [cache.find(key) is not None for key in keys] == [False, True, True]
