"""From a function's type hints to what a model may send it."""

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from app.settings.hints import type_within
from app.tools.context import ToolContext
from app.tools.errors import InvalidTool
from app.tools.schema import json_schema

_Parameters = Mapping[str, inspect.Parameter]
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool takes. An argument that is not sent is UNSET: the function's own default then holds."""

    arguments: type[msgspec.Struct]
    context_names: tuple[str, ...]
    schema: dict[str, Any]


def read_signature(tool: str, function: Callable[..., Any]) -> Signature:
    """Raise InvalidTool, naming the parameter, for a signature that a JSON object cannot fill."""
    parameters = inspect.signature(function).parameters
    hints = _hints(tool, function, parameters)
    context_names = tuple(name for name in parameters if type_within(hints.get(name)) is ToolContext)
    sent = {name: parameters[name] for name in parameters if name not in context_names}
    for name, parameter in sent.items():
        _require_fillable(tool, parameter, hints.get(name))
    arguments = msgspec.defstruct(
        f"{tool}_arguments",
        [_field(parameter, hints[name]) for name, parameter in sent.items()],
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
    )
    schema = json_schema(arguments)
    for name, shape in schema["properties"].items():
        shape.update(_default_of(parameters[name], hints[name]))
    return Signature(arguments=arguments, context_names=context_names, schema=schema)


def _hints(tool: str, function: Callable[..., Any], parameters: _Parameters) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        unknown = str(error.name)
        named = [name for name, parameter in parameters.items() if unknown in str(parameter.annotation)]
        where = f"parameter {', '.join(named)}" if named else "its result"
        raise InvalidTool(tool, f"the annotation of {where} uses {unknown!r}, which is not known") from error
    except TypeError as error:
        raise InvalidTool(tool, f"its annotations cannot be read: {error}") from error


def _require_fillable(tool: str, parameter: inspect.Parameter, hint: Any) -> None:
    name = parameter.name
    if parameter.kind not in _NAMED:
        raise InvalidTool(tool, f"parameter {name!r} cannot be given by name, as a model gives all of them")
    if hint is None:
        raise InvalidTool(tool, f"parameter {name!r} needs a type annotation")
    if name.startswith("__"):
        raise InvalidTool(tool, f"parameter {name!r} must not start with two underscores")
    try:
        msgspec.json.schema(hint)
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidTool(tool, f"parameter {name!r}: {hint!r} cannot be sent as JSON ({reason})") from error


def _field(parameter: inspect.Parameter, hint: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, hint
    return parameter.name, hint | UnsetType, UNSET


def _default_of(parameter: inspect.Parameter, hint: Any) -> dict[str, Any]:
    """The default as the schema tells it; nothing where it is none that a model could send."""
    if parameter.default is inspect.Parameter.empty:
        return {}
    try:
        plain = msgspec.to_builtins(parameter.default, str_keys=True)
        msgspec.convert(plain, hint, str_keys=True)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return {}
    return {"default": plain}
