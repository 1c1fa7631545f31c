"""The form that an answer is asked for in, and whether that can be kept to."""

from asyncio import to_thread
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal

import msgspec

from app.http.openai.refusing import wrong
from app.models.answer_check import flaw_in_schema
from domain.submission import Overrides

MAX_SCHEMA_BYTES = 65_536
"""Of a caller's schema."""
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
    """The schema that the answer must meet, if any. Whether it is one is for `check_schema` to say."""
    if format_ is None or format_.type == "text":
        return None
    if format_.type == "json_object":
        return _ANY_OBJECT
    named = format_.json_schema if isinstance(format_, ResponseFormat) else format_
    if named is None or not named.name:
        raise wrong(where, "type json_schema needs a schema and its name")
    return _ANY_OBJECT if named.schema is None else named.schema


async def check_schema(asked: Overrides | None, where: str) -> None:
    """Raise BadBody for a schema that is none, that is not all here, or that could hold up the host."""
    if asked is None or asked.response_schema in (None, _ANY_OBJECT):
        return
    encoded = msgspec.json.encode(asked.response_schema)
    if len(encoded) > MAX_SCHEMA_BYTES:
        raise wrong(where, f"is longer than {MAX_SCHEMA_BYTES} bytes")
    # It can take seconds, in which everybody else has their turn.
    if flaw := await to_thread(_flaw_in, encoded):
        raise wrong(where, flaw)


@lru_cache(maxsize=256)
def _flaw_in(encoded: bytes) -> str | None:
    schema = msgspec.json.decode(encoded)
    if flaw := flaw_in_schema(schema):
        return flaw
    if pattern := next(_patterns(schema), None):
        # Some take for ever on some texts, and nothing else has its turn meanwhile.
        return f"has {pattern}; patterns are for agents' own schemas"
    return None


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
