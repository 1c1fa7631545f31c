"""A JSON schema that an agent's answer must meet (CHAIN-9)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from app.models.wire_errors import bounded

MAX_STEPS = 100_000
"""What one check may take: a keyword is a step. A schema can refer to itself without end."""
_STEPS_OF = {"$ref": 10, "$dynamicRef": 10}

Check = Callable[..., Iterable[Any] | None]

_NOWHERE: Registry[Any] = Registry()  # the default one would fetch what a schema refers to


def flaw_in_schema(schema: Mapping[str, Any]) -> str | None:
    """Why no answer could be held against this schema; None if one can."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"is no JSON schema: {bounded(error.message)}"
    resource = DRAFT202012.create_resource(schema)
    base = resource.id() or ""
    resolver = _NOWHERE.with_resource(base, resource).resolver(base)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            return f"refers to {reference!r}, which is not in the schema itself"
    return None


class _TooManySteps(Exception):
    """Whoever wrote the schema, checking an answer may not hold up the host."""


class _Steps:
    """Counts what one check does. Nothing else runs meanwhile."""

    def __init__(self) -> None:
        self._left = 0

    def begin(self) -> None:
        self._left = MAX_STEPS

    def counting(self, check: Check, cost: int) -> Check:
        def counted(*arguments: Any) -> Iterator[Any]:
            self._left -= cost
            if self._left < 0:
                raise _TooManySteps
            yield from check(*arguments) or ()

        return counted


_steps = _Steps()
_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        keyword: _steps.counting(check, _STEPS_OF.get(keyword, 1))
        for keyword, check in Draft202012Validator.VALIDATORS.items()
    },
)


class AnswerSchema:
    """Holds answers against one schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._validator = _Validator(schema, registry=_NOWHERE)

    def flaw_in(self, answer: str) -> str | None:
        """What is wrong with this answer, in words that a model understands; None if nothing is."""
        try:
            value = msgspec.json.decode(answer)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            return f"the answer must be JSON and nothing else, but {error}"
        try:
            _steps.begin()
            flaw = best_match(self._validator.iter_errors(value))
        except (_TooManySteps, RecursionError):
            return "it would take too long to hold the answer against its JSON schema"
        if flaw is None:
            return None
        return f"the answer does not meet its JSON schema at {flaw.json_path}: {bounded(flaw.message)}"


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(schema, list | tuple):
        for item in schema:
            yield from _references(item)
