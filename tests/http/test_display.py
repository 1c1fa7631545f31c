"""Events as they are shown."""

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import msgspec

from app.http.display import EventView, frame_data, view_of
from app.store.feed import LiveFrame
from domain.events import Event, FinishReason, ModelReplied, Recorded, TextDelta, ToolReturned
from domain.ids import RunId, StreamId, Version
from domain.messages import AssistantMessage, ToolCall

RUN = RunId(UUID(int=7))
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LIMIT = 100


def recorded(event: Event) -> Recorded[Event]:
    return Recorded(
        stream_id=StreamId(RUN), sequence=Version(3), position=99, at=AT, tenant="default", event=event
    )


def shown(event: Event, limit: int = 65536) -> object:
    return msgspec.json.decode(frame_data(RUN, recorded(event), limit))


def test_a_frame_has_the_run_the_number_the_type_the_time_and_the_fields() -> None:
    """HTTP-3"""
    assert shown(TextDelta(step=1, text="hello")) == {
        "run_id": str(RUN),
        "sequence": 3,
        "type": "TextDelta",
        "at": "2026-01-02T03:04:05Z",
        "data": {"step": 1, "text": "hello"},
    }


def test_an_event_in_json_is_the_frame_without_its_run() -> None:
    """EVENT-1"""
    event = TextDelta(step=1, text="hello")
    view = msgspec.json.decode(msgspec.json.encode(view_of(recorded(event), LIMIT)))
    assert {**view, "run_id": str(RUN)} == shown(event)


def test_fields_that_have_their_default_are_shown_too() -> None:
    assert view_of(recorded(ToolReturned(call_id="c", tool="t", output="o")), LIMIT).data == {
        "call_id": "c",
        "tool": "t",
        "output": "o",
        "duration_ms": 0,
        "truncated": False,
    }


def test_text_of_the_limit_is_whole_and_one_byte_more_is_cut_with_a_marker() -> None:
    """EVENT-7"""
    whole = ToolReturned(call_id="c", tool="t", output="x" * LIMIT)
    longer = ToolReturned(call_id="c", tool="t", output="x" * (LIMIT + 1))
    assert view_of(recorded(whole), LIMIT).data["output"] == "x" * LIMIT
    assert (
        view_of(recorded(longer), LIMIT).data["output"]
        == "x" * LIMIT + " [cut for display: 100 of 101 bytes]"
    )


def test_frames_and_lists_cut_alike() -> None:
    """EVENT-7"""
    event = ToolReturned(call_id="c", tool="t", output="é" * 1000)
    frame = msgspec.json.decode(frame_data(RUN, recorded(event), LIMIT), type=EventView)
    assert frame == view_of(recorded(event), LIMIT)


def test_a_cut_never_splits_a_character() -> None:
    """EVENT-7"""
    event = ToolReturned(call_id="c", tool="t", output="€" * 34)
    assert view_of(recorded(event), LIMIT).data["output"] == "€" * 33 + " [cut for display: 100 of 102 bytes]"


def test_text_deep_inside_is_cut_and_everything_beside_it_is_kept() -> None:
    """EVENT-7"""
    calls = (ToolCall(id="a", name="t", arguments="y" * 5000), ToolCall(id="b", name="t", arguments="{}"))
    event = ModelReplied(
        step=1,
        provider="p",
        model="m",
        message=AssistantMessage(tool_calls=calls),
        finish=FinishReason.TOOL_CALLS,
        cost=Decimal("0.10"),
    )
    whole, cut = view_of(recorded(event), 10_000).data, view_of(recorded(event), LIMIT).data
    long, short = cut["message"]["tool_calls"]
    assert long["arguments"] == "y" * LIMIT + " [cut for display: 100 of 5000 bytes]"
    long["arguments"] = "y" * 5000
    assert short == {"id": "b", "name": "t", "arguments": "{}"}
    assert msgspec.json.encode(cut, order="sorted") == msgspec.json.encode(whole, order="sorted")


def test_what_is_recorded_stays_whole() -> None:
    """EVENT-7"""
    event = recorded(ToolReturned(call_id="c", tool="t", output="x" * 1000))
    frame_data(RUN, event, LIMIT)
    view_of(event, LIMIT)
    assert event == recorded(ToolReturned(call_id="c", tool="t", output="x" * 1000))


def test_text_that_is_not_recorded_has_no_number_and_no_time() -> None:
    """EVENT-7"""
    frame = LiveFrame(after=3, event=TextDelta(step=1, text="hi"))
    assert msgspec.json.decode(frame_data(RUN, frame, LIMIT)) == {
        "run_id": str(RUN),
        "type": "TextDelta",
        "data": {"step": 1, "text": "hi"},
    }
