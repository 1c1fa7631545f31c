"""Values of the domain, any that its types allow."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, NewType, Union, cast, get_args, get_origin
from uuid import UUID

import msgspec
from hypothesis import strategies as st

from domain.events import AnyEvent, Event
from domain.failure import CallFailure, FailureKind
from domain.messages import AssistantMessage, ToolCall

_JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_AMOUNTS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12)
_LEAVES: Mapping[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(),
    NoneType: st.none(),
    Any: _JSON_VALUES,
    UUID: st.uuids(),
    datetime: st.datetimes(timezones=st.just(UTC)),
    Decimal: _AMOUNTS,
    msgspec.Raw: _JSON_VALUES.map(lambda value: msgspec.Raw(msgspec.json.encode(value))),
}


def of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that events are made of."""
    if hint in _LEAVES:
        return _LEAVES[hint]
    if isinstance(hint, NewType):
        return of_type(hint.__supertype__)
    origin, args = get_origin(hint), get_args(hint)
    build = _OF_ORIGIN.get(origin)
    if build is not None:
        return build(args)
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    return _struct(hint)


def _struct(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    fields = {field.name: of_type(field.type) for field in msgspec.structs.fields(struct)}
    return st.builds(struct, **fields)


def _constrained(args: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    hint, meta = args
    if meta.pattern:
        return st.from_regex(meta.pattern)
    if hint is str:
        return st.text(min_size=meta.min_length or 0)
    if hint is float:
        return st.floats(min_value=meta.ge, max_value=meta.le)
    return st.integers(min_value=meta.ge, max_value=meta.le)


def _either(args: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.one_of([of_type(arg) for arg in args])


_OF_ORIGIN: Mapping[Any, Callable[[tuple[Any, ...]], st.SearchStrategy[Any]]] = {
    Annotated: _constrained,
    Union: _either,
    UnionType: _either,
    tuple: lambda args: st.lists(of_type(args[0]), max_size=3).map(tuple),
    dict: lambda args: st.dictionaries(st.text(), of_type(args[1]), max_size=3),
}

EVENT_TYPES: tuple[type[Event], ...] = get_args(AnyEvent)


def events() -> st.SearchStrategy[Event]:
    return st.one_of([of_type(event_type) for event_type in EVENT_TYPES])


def call_failures() -> st.SearchStrategy[CallFailure]:
    """Also what no adapter should report: odd statuses, waits that are not numbers."""
    return st.builds(
        CallFailure,
        kind=st.sampled_from(FailureKind),
        message=st.text(max_size=10),
        status=st.none() | st.integers(-1, 700),
        code=st.none() | st.text(max_size=5) | st.sampled_from(["overloaded_error", "429", "INTERNAL"]),
        retry_after_s=st.none() | st.floats(),
        content_delivered=st.booleans(),
    )


def replies() -> st.SearchStrategy[AssistantMessage]:
    """Replies with text, tool calls, both or neither; a call id may be one that an earlier step used."""
    calls = st.builds(
        ToolCall,
        id=st.sampled_from(["c1", "c2", "c3"]),
        name=st.sampled_from(["get_order", "refund"]),
        arguments=st.sampled_from(["{}", '{"id":7}', "not json"]),
    )
    return st.builds(
        AssistantMessage,
        content=st.sampled_from(["", "It ships today."]),
        tool_calls=st.lists(calls, max_size=3).map(lambda found: cast(tuple[ToolCall, ...], tuple(found))),
    )
