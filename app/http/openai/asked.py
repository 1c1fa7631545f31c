"""What a request asks of the run beyond its messages: options, the answer's form, labels."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from app.http.openai.refusing import wrong
from app.models.answer_check import flaw_in_schema
from domain.agent import ModelOptions

Temperature = Annotated[float, Meta(ge=0, le=2)]
Probability = Annotated[float, Meta(ge=0, le=1)]
TokenLimit = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_StopText = Annotated[str, Meta(min_length=1)]
Stop = _StopText | Annotated[tuple[_StopText, ...], Meta(max_length=4)]
Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
"""The caller's own labels."""

_ANY_OBJECT: dict[str, Any] = {"type": "object"}
_PATTERNS = frozenset({"pattern", "patternProperties"})
_BY_NAME = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose members are not keywords."""
_VALUES = frozenset({"enum", "const", "default", "examples"})


class NamedSchema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A JSON schema for the answer. It is always kept to, whether `strict` or not."""

    name: str
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class TextFormat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The form of the answer, as Responses has it."""

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The form of the answer, as Chat Completions has it."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | None = None


def schema_of(format_: TextFormat | ResponseFormat | None, where: str) -> dict[str, Any] | None:
    """The schema that the answer must meet. Raise BadBody for what is none, or is not all here."""
    if format_ is None or format_.type == "text":
        return None
    if format_.type == "json_object":
        return _ANY_OBJECT
    named = format_.json_schema if isinstance(format_, ResponseFormat) else format_
    if named is None or not named.name:
        raise wrong(where, "type json_schema needs a schema and its name")
    schema = _ANY_OBJECT if named.schema is None else named.schema
    _check(
        schema, f"{where}.json_schema.schema" if isinstance(format_, ResponseFormat) else f"{where}.schema"
    )
    return schema


def options_of(
    *,
    temperature: float | None,
    top_p: float | None,
    max_output_tokens: int | None,
    stop: str | tuple[str, ...] | None = None,
    seed: int | None = None,
) -> ModelOptions:
    return ModelOptions(
        temperature=temperature,
        top_p=top_p,
        max_output_tokens=max_output_tokens,
        stop=(stop,) if isinstance(stop, str) else stop or (),
        seed=seed,
    )


def _check(schema: dict[str, Any], where: str) -> None:
    if flaw := flaw_in_schema(schema):
        raise wrong(where, flaw)
    if pattern := next(_patterns(schema), None):
        # Some take for ever on some texts, and what is checked meanwhile is nothing else.
        raise wrong(where, f"has {pattern}; patterns are for agents' own schemas")


def _patterns(schema: Any) -> Iterator[str]:
    """The keywords of the schema, at any depth, that are regular expressions."""
    if isinstance(schema, dict):
        yield from schema.keys() & _PATTERNS
        for keyword, value in schema.items():
            if keyword in _BY_NAME and isinstance(value, dict):
                yield from (found for named in value.values() for found in _patterns(named))
            elif keyword not in _VALUES:
                yield from _patterns(value)
    elif isinstance(schema, list):
        yield from (found for one in schema for found in _patterns(one))
