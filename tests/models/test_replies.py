"""What a successful answer is taken for, whichever wire it came by."""

import pytest

from app.models.port import ModelCallError
from app.models.replies import MAX_CONTENT_BYTES, MOST_TOKENS, reply_of
from domain import events as e
from domain.failure import FailureKind
from domain.messages import ToolCall, Usage
from tests.hosts import OpenHost, follow, only, scripted, start


@pytest.mark.parametrize(
    ("said", "kept"), [(0, 0), (MOST_TOKENS, MOST_TOKENS), (-1, 0), (MOST_TOKENS + 1, 0), (2**70, 0)]
)
@pytest.mark.parametrize("field", Usage.__struct_fields__)
def test_numbers_that_count_nothing_are_none(field: str, said: int, kept: int) -> None:
    """A count that no column can hold would stop every view for ever."""
    reply = reply_of("Hello.", (), length=False, usage=Usage(**{field: said}))
    assert reply.usage == Usage(**{field: kept})


async def test_no_number_of_a_provider_stops_a_view(host_of: OpenHost) -> None:
    """EVENT-6: a view that cannot fold an event would stand still from then on."""
    models = (
        '[providers.script.models.m.default]\ntext = "Hi"\nusage = { input_tokens = 99999999999999999999 }\n'
    )
    host = await host_of(scripted(models, '[agents.a]\nprovider = "script"\nmodel = "m"\n'))
    assert only(await follow(host, await start(host, "a")), e.RunCompleted)
    end = await host.services.log.end_position()
    for view in host.services.views.failing():
        await host.services.views.wait_for(view, end, timeout_s=10)


@pytest.mark.parametrize(
    ("text", "arguments"), [("x" * (MAX_CONTENT_BYTES + 1), "{}"), ("x", "y" * MAX_CONTENT_BYTES)]
)
def test_an_answer_that_no_log_should_hold_is_unreadable(text: str, arguments: str) -> None:
    """One event of this size would keep the appends of every other run waiting."""
    with pytest.raises(ModelCallError) as refused:
        reply_of(text, (ToolCall(id="1", name="t", arguments=arguments),), length=False, usage=Usage())
    assert refused.value.failure.kind is FailureKind.UNREADABLE
