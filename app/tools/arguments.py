"""The model's own text of a call's arguments, checked."""

from typing import TypeVar

import msgspec

from domain import strict_json

S = TypeVar("S", bound=msgspec.Struct)


class InvalidArguments(Exception):
    """The arguments do not fit the tool. The message tells the model what to send instead."""


def read_arguments(text: str, expected: type[S]) -> S:
    """The arguments. No text at all is an empty object. Raise InvalidArguments."""
    text = text.strip() or "{}"
    try:
        sent = strict_json.parse(text)
    except ValueError as error:
        raise InvalidArguments(f"The arguments are not valid JSON: {error}.") from error
    if not isinstance(sent, dict):
        raise InvalidArguments(f"The arguments must be a JSON object, not {_kind(sent)}.")
    try:
        return msgspec.json.decode(text, type=expected)
    except msgspec.MsgspecError as error:
        raise InvalidArguments(_misfit(error, expected)) from error


def _misfit(error: msgspec.MsgspecError, expected: type[msgspec.Struct]) -> str:
    reason = str(error).replace(" - at `$", " at `").replace("`", "'")
    known = ", ".join(expected.__struct_fields__) or "none"
    return f"The arguments do not fit: {reason[:1].lower()}{reason[1:]}. Known arguments: {known}."


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return "a string"
    return "null" if value is None else "a bare value"
