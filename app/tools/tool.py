"""A tool: a function that a model may call, and the terms it is called on."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, overload

from msgspec import UNSET

from app.settings import parse_duration
from app.tools.arguments import read_arguments
from app.tools.context import ToolContext
from app.tools.errors import InvalidTool
from app.tools.outcome import DEFAULT_OUTPUT_LIMIT
from app.tools.signature import Signature, read_signature
from domain.events import ToolEffect
from domain.tool import ToolSpec

DEFAULT_TIMEOUT_S = 30.0
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

Function = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function and its terms. Calling it calls the function, so that it can be tested like one."""

    name: str
    description: str
    function: Function = field(repr=False)
    signature: Signature = field(repr=False)
    effect: ToolEffect
    safe_to_repeat: bool
    timeout_s: float
    retries: int
    output_limit: int
    requires_approval: bool

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """What a model is told."""
        return ToolSpec(name=self.name, description=self.description, parameters=self.signature.schema)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def keywords(self, arguments: str, context: ToolContext) -> dict[str, Any]:
        """What to call the function with, from the model's own text. Raise InvalidArguments."""
        sent = read_arguments(arguments, self.signature.arguments)
        given = ((name, getattr(sent, name)) for name in sent.__struct_fields__)
        return {
            **{name: value for name, value in given if value is not UNSET},
            **dict.fromkeys(self.signature.context_names, context),
        }


@overload
def tool(function: Function, /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: ToolEffect | str = ToolEffect.EXTERNAL,
    safe_to_repeat: bool = False,
    timeout: float | str = DEFAULT_TIMEOUT_S,
    retries: int = 0,
    requires_approval: bool = False,
    output_limit: int = DEFAULT_OUTPUT_LIMIT,
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: ToolEffect | str = ToolEffect.EXTERNAL,
    safe_to_repeat: bool = False,
    timeout: float | str = DEFAULT_TIMEOUT_S,
    retries: int = 0,
    requires_approval: bool = False,
    output_limit: int = DEFAULT_OUTPUT_LIMIT,
) -> Tool | Callable[[Function], Tool]:
    """Make a function a tool. Its type hints say what a model sends; its docstring tells the model what for.

    `async def` functions run on the event loop, plain ones in threads.

    A tool that does not say what its `effect` is counts as `external`, the worst that it can be: after a
    crash such a call is not repeated without proof. To declare `read` or `write` costs a word, and a payment
    that was taken for a `write` would be made twice. `safe_to_repeat` is the proof: the tool itself keeps its
    effect single, for instance by sending the context's `call_key` along.

    `timeout` (seconds, or "30s") holds for each attempt. `retries` is how often a call that raised or took
    too long is made again. Output beyond `output_limit` bytes is cut, with a mark that the model can see.
    """

    def decorated(function: Function) -> Tool:
        given = name or str(getattr(function, "__name__", ""))
        _require_function(given, function)
        made = Tool(
            name=given,
            description=_first_paragraph(function) if description is None else description,
            function=function,
            signature=read_signature(given, function),
            effect=_effect(given, effect),
            safe_to_repeat=safe_to_repeat,
            timeout_s=_timeout_s(given, timeout),
            retries=retries,
            output_limit=output_limit,
            requires_approval=requires_approval,
        )
        _require_counts(made)
        return made

    return decorated if function is None else decorated(function)


def _require_function(name: str, function: Function) -> None:
    if not NAME.fullmatch(name):
        raise InvalidTool(name, "a name is 1 to 64 letters, digits, hyphens and underscores")
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise InvalidTool(name, "only functions can be tools")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTool(name, "a generator cannot be a tool; return a list")


def _require_counts(made: Tool) -> None:
    if made.retries < 0:
        raise InvalidTool(made.name, f"retries must not be negative, and is {made.retries}")
    if made.output_limit < 1:
        raise InvalidTool(made.name, f"output_limit must be at least one byte, and is {made.output_limit}")


def _effect(name: str, effect: ToolEffect | str) -> ToolEffect:
    try:
        return ToolEffect(effect)
    except ValueError as error:
        raise InvalidTool(name, f"effect {effect!r} is none of {', '.join(ToolEffect)}") from error


def _timeout_s(name: str, timeout: float | str) -> float:
    try:
        seconds = parse_duration(timeout)
    except ValueError as error:
        raise InvalidTool(name, f"timeout: {error}") from error
    if seconds <= 0:
        raise InvalidTool(name, f"timeout must be positive, and is {timeout!r}")
    return seconds


def _first_paragraph(function: Function) -> str:
    paragraph, _, _ = (inspect.getdoc(function) or "").partition("\n\n")
    return " ".join(paragraph.split())
