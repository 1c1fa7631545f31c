"""Events as they are shown: the fixed JSON shape, and long payloads cut with a marker (EVENT-7)."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from app.store.feed import Frame
from domain.events import Event, Recorded
from domain.ids import RunId


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a run. `type` names the kind of fact and `data` holds its fields."""

    sequence: int
    type: str
    at: datetime
    data: dict[str, Any]


class FrameView(msgspec.Struct, frozen=True, kw_only=True):
    """The `data` of a frame: an event, and the run that it belongs to. Unrecorded text has no number."""

    run_id: RunId
    sequence: int | UnsetType = UNSET
    type: str
    at: datetime | UnsetType = UNSET
    data: dict[str, Any]


_encoder = msgspec.json.Encoder(decimal_format="string")
encode = _encoder.encode


def view_of(recorded: Recorded[Event], limit: int) -> EventView:
    event = recorded.event
    return EventView(
        sequence=recorded.sequence,
        type=type(event).__name__,
        at=recorded.at,
        data=displayed(msgspec.structs.asdict(event), limit),
    )


def frame_data(run_id: RunId, frame: Frame, limit: int) -> bytes:
    """The JSON of one frame."""
    event = frame.event
    view = FrameView(run_id=run_id, type=type(event).__name__, data=msgspec.structs.asdict(event))
    if isinstance(frame, Recorded):
        view = msgspec.structs.replace(view, sequence=frame.sequence, at=frame.at)
    encoded = encode(view)
    if len(encoded) <= limit:  # no text in it can be longer than the whole
        return encoded
    return encode(msgspec.structs.replace(view, data=displayed(view.data, limit)))


def displayed(data: dict[str, Any], limit: int) -> dict[str, Any]:
    """The same data with every text of more than `limit` bytes cut. What is stored stays whole."""
    if len(encode(data)) <= limit:
        return data
    cut: dict[str, Any] = _cut(msgspec.to_builtins(data, builtin_types=(datetime,)), limit)
    return cut


def _cut(value: Any, limit: int) -> Any:
    match value:
        case str():
            return cut_text(value, limit)
        case dict():
            return {key: _cut(item, limit) for key, item in value.items()}
        case list() | tuple():
            return [_cut(item, limit) for item in value]
        case _:
            return value


def cut_text(text: str, limit: int) -> str:
    """The text, or its first `limit` bytes and a marker that says so."""
    if len(text) * 4 <= limit:
        return text
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return f"{raw[:limit].decode(errors='ignore')} [cut for display: {limit} of {len(raw)} bytes]"
