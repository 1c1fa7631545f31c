"""What came in, as typed values: bodies, queries, ids. Everything wrong is refused by name, never a crash."""

import asyncio
import json
import re
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from aiohttp import web

from app.http.errors import (
    BadBody,
    BadQuery,
    BodyTimeout,
    BodyTooLarge,
    FieldError,
    NoSuchRun,
    UnsupportedMediaType,
)
from app.http.services import services_of
from domain.ids import RunId
from domain.strict_json import first_repeated

T = TypeVar("T")

_AT = re.compile(r"^(?P<what>.*?)(?: - at (?:`key` in )?`(?P<path>[^`]*)`)?$", re.DOTALL)
_FIELD = re.compile(r"field `([^`]*)`")
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
_MAX_DEPTH = 64
_MAX_SEQUENCE = 2**31 - 1


async def body_of(request: web.Request, type_: type[T]) -> T:
    """The request's JSON body. Raise a Refused that says what is wrong with it."""
    _check_media_type(request)
    return decode_json(await read_body(request), type_)


async def optional_body_of(request: web.Request, type_: type[T]) -> T:
    """The same; an empty body, of whatever type, stands for `{}`."""
    raw = await read_body(request)
    if not raw:
        return decode_json(b"{}", type_)
    _check_media_type(request)
    return decode_json(raw, type_)


async def read_body(request: web.Request) -> bytes:
    """All of it, up to the limit; it can be read again. Raise a Refused."""
    limit = request.client_max_size
    if request.headers.get("Content-Encoding", "").strip().lower() not in _ENCODINGS:
        raise UnsupportedMediaType("Send the body as it is, or with Content-Encoding: gzip.")
    if request.content_length is not None and request.content_length > limit:
        raise BodyTooLarge(f"The body may have {limit} bytes; server.max_body_bytes raises the limit.")
    if request.content.is_eof():
        return await _decoded(request)  # it came with its head, as most do: there is nothing to wait for
    timeout_s = services_of(request).server.body_timeout
    try:
        async with asyncio.timeout(timeout_s):
            return await _decoded(request)
    except TimeoutError:
        raise BodyTimeout(f"The body did not come within {timeout_s:g} s (server.body_timeout).") from None


async def _decoded(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.RequestPayloadError:
        raise BadBody("The body is not encoded in the way that its headers say.") from None


def _check_media_type(request: web.Request) -> None:
    # Insisting on the header also keeps other sites' web pages out: a browser sends this type
    # across origins only after asking first.
    media = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise UnsupportedMediaType("Send JSON and say so: Content-Type: application/json")


def decode_json(raw: bytes, type_: type[T]) -> T:
    """Strictly: no unknown or repeated names, no text that is not UTF-8, no nesting without end."""
    try:
        value: T = _decoder(type_).decode(raw)  # type: ignore[arg-type]  # types are hashable
        _check_names_and_depth(raw)
    except msgspec.ValidationError as error:
        raise _named(error, BadBody) from None
    except ValueError as error:
        raise BadBody(f"The body is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    return value


def query_of(request: web.Request, type_: type[T]) -> T:
    """The query parameters. Raise BadQuery naming the one that is wrong."""
    given: dict[str, str | list[str]] = {}
    for name, value in request.query.items():
        if name.endswith("[]"):
            given[name] = [*given.get(name, ()), value]
            continue
        if name in given:
            raise BadQuery(f"{name} is given twice.", FieldError(field=name, message="given twice"))
        given[name] = value
    try:
        return msgspec.convert(given, type_, strict=False)
    except msgspec.ValidationError as error:
        raise _named(error, BadQuery) from None


def run_id_of(request: web.Request, name: str = "id") -> RunId:
    """The run that the path names. Raise NoSuchRun for what is no id."""
    text = request.match_info[name]
    try:
        return RunId(UUID(text))
    except ValueError:
        raise NoSuchRun(f"there is no run {text}") from None


def sequence_of(name: str, text: str) -> int:
    """A place in a run's stream: 0 is before the first event. Raise BadQuery."""
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) > _MAX_SEQUENCE:
        raise BadQuery(
            f"{name} must be the number of an event.", FieldError(field=name, message="not an event's number")
        )
    return int(text)


@cache
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)


def _named(error: msgspec.ValidationError, kind: type[BadBody | BadQuery]) -> BadBody | BadQuery:
    """msgspec says where in words; clients get the place by itself."""
    parts = _AT.match(str(error))
    what, path = (parts["what"], parts["path"]) if parts else (str(error), None)
    field = path or "$"
    if named := _FIELD.search(what):
        field = f"{field}.{named[1]}"
    if kind is BadQuery:
        field = field.removeprefix("$.")
    return kind(f"{field}: {what}", FieldError(field=field, message=what))


def _check_names_and_depth(raw: bytes) -> None:
    """Two readers of one body must not see two things, and what is read here must be readable ever after."""
    json.loads(raw, object_pairs_hook=_unrepeated)
    if raw.count(b"[") + raw.count(b"{") > _MAX_DEPTH and _depth(json.loads(raw)) > _MAX_DEPTH:
        raise _too_deep()


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = str(first_repeated(name for name, _ in pairs))
        raise BadBody(f"{twice} is given twice.", FieldError(field=twice, message="given twice"))
    return members


def _depth(value: Any) -> int:
    """How deep containers are nested in each other, without recursion."""
    deepest, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        deepest += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return deepest


def _too_deep() -> BadBody:
    return BadBody(
        f"The body is nested more than {_MAX_DEPTH} deep.", FieldError(field="$", message="nested too deep")
    )
