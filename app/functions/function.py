"""A function that a workflow's node calls, and the terms it is called on."""

import inspect
import math
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, overload

from app.functions.context import Transient, WorkflowContext
from app.settings import parse_duration
from domain.agent import NAME_PATTERN
from domain.errors import Rejected

Function = Callable[..., Any]
MAY_PASS: tuple[type[Exception], ...] = (Transient, ConnectionError, TimeoutError)
"""Failures that are worth another try."""

_LONGEST_DELAY_S = 3600.0


class InvalidFunction(Rejected):
    """The function cannot be used in a workflow as it is written. The message says what to change."""

    code = "invalid_function"

    def __init__(self, function: str, reason: str) -> None:
        super().__init__(f"workflow function {function!r}: {reason}")


@dataclass(frozen=True, kw_only=True)
class WorkflowFunction:
    """A function and its terms. Calling it calls the function, so that it can be tested like one."""

    name: str
    description: str
    function: Function = field(repr=False)
    text_name: str | None
    """The parameter that is given the text."""
    context_name: str | None
    attempts: int
    delay_s: float
    multiplier: float
    transient: tuple[type[Exception], ...]
    starts_when_budget_is_spent: bool

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def keywords(self, text: str, context: WorkflowContext) -> dict[str, Any]:
        """What to call the function with."""
        given = ((self.text_name, text), (self.context_name, context))
        return {name: value for name, value in given if name is not None}

    def delay_after(self, attempt: int) -> float:
        """How long to wait before the attempt after this one, in seconds."""
        try:
            return min(self.delay_s * self.multiplier ** (attempt - 1), _LONGEST_DELAY_S)
        except OverflowError:
            return _LONGEST_DELAY_S if self.delay_s else 0.0


@overload
def workflow_function(function: Function, /) -> WorkflowFunction: ...


@overload
def workflow_function(
    *,
    name: str | None = None,
    attempts: int = 1,
    delay: float | str = "1s",
    multiplier: float = 2.0,
    transient: tuple[type[Exception], ...] = (),
    starts_when_budget_is_spent: bool = False,
) -> Callable[[Function], WorkflowFunction]: ...


def workflow_function(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    attempts: int = 1,
    delay: float | str = "1s",
    multiplier: float = 2.0,
    transient: tuple[type[Exception], ...] = (),
    starts_when_budget_is_spent: bool = False,
) -> WorkflowFunction | Callable[[Function], WorkflowFunction]:
    """Make a function one that nodes of workflows call. It takes a text, or a WorkflowContext, or both.

    `async def` functions run on the event loop, plain ones in threads. What it returns is the node's output:
    a string as it is, anything else as JSON; `Handoff` and `Done` decide besides who goes on.

    `attempts`: how often it is called at most, if it fails in a way that may pass: with `Transient`,
    ConnectionError, TimeoutError, or one of `transient`. The first wait is `delay` (seconds, or "1s"), each
    further one `multiplier` times the one before. All attempts are one super-step (WF-5).

    `starts_when_budget_is_spent` is for what spends nothing and has to be done all the same, such as keeping
    what the budget has just paid for (BUDGET-5).
    """

    def decorated(function: Function) -> WorkflowFunction:
        given = name or str(getattr(function, "__name__", ""))
        _require_function(given, function)
        text_name, context_name = _parameters(given, function)
        return WorkflowFunction(
            name=given,
            description=" ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split()),
            function=function,
            text_name=text_name,
            context_name=context_name,
            attempts=_attempts(given, attempts),
            delay_s=_delay_s(given, delay),
            multiplier=_multiplier(given, multiplier),
            transient=(*MAY_PASS, *transient),
            starts_when_budget_is_spent=starts_when_budget_is_spent,
        )

    return decorated if function is None else decorated(function)


def _require_function(name: str, function: Function) -> None:
    if not re.match(NAME_PATTERN, name):
        raise InvalidFunction(name, "a name has letters, digits, dots, dashes and underscores")
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise InvalidFunction(name, "only functions can be called by nodes")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidFunction(name, "a generator has no output; return a list")


def _parameters(name: str, function: Function) -> tuple[str | None, str | None]:
    """The names of the parameters for the text and for the context."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError) as error:
        raise InvalidFunction(name, f"its annotations cannot be read: {error}") from error
    text_name = context_name = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidFunction(name, f"parameter {parameter.name!r} cannot be given by name")
        if hints.get(parameter.name) is WorkflowContext:
            context_name = parameter.name
        elif text_name is None:
            text_name = parameter.name
        elif parameter.default is inspect.Parameter.empty:
            raise InvalidFunction(name, f"nobody gives it {parameter.name!r}: it takes a text and a context")
    return text_name, context_name


def _attempts(name: str, attempts: int) -> int:
    if not 1 <= attempts <= 100:
        raise InvalidFunction(name, f"attempts must be from 1 to 100, and is {attempts}")
    return attempts


def _delay_s(name: str, delay: float | str) -> float:
    try:
        seconds = parse_duration(delay)
    except ValueError as error:
        raise InvalidFunction(name, f"delay: {error}") from error
    if seconds < 0:
        raise InvalidFunction(name, f"delay must not be negative, and is {delay!r}")
    return seconds


def _multiplier(name: str, multiplier: float) -> float:
    if not (math.isfinite(multiplier) and multiplier >= 1):
        raise InvalidFunction(name, f"multiplier must be at least 1, and is {multiplier}")
    return float(multiplier)
