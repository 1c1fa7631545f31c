"""What defining agents and workflows over HTTP has in common: bodies, names, versions in pages."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web

from app.http.bodies import Body
from app.http.errors import BadBody, FieldError
from app.http.preconditions import etag_of
from app.http.replies import reply
from domain.agent import NAME_PATTERN
from projections.base import BrokenStream, Fact
from projections.read.window import Window


class Version(Protocol):
    """One version of a definition."""

    @property
    def version(self) -> int: ...


V = TypeVar("V", bound=Version)


def body_for(name: str, definition: type[msgspec.Struct]) -> Any:
    """The body that has all fields of a definition, but for the name, which is in the path."""
    fields = [
        (field.name, field.type) if field.required else (field.name, field.type, _default(field))
        for field in msgspec.structs.fields(definition)
        if field.name != "name"
    ]
    return msgspec.defstruct(
        name, fields, bases=(Body,), frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def name_in(request: web.Request, owner: str) -> str:
    """Raise BadBody for what cannot be a name. `owner` says whose: "an agent's"."""
    name = request.match_info["name"]
    if not re.match(NAME_PATTERN, name):
        told = f"{owner} name has letters, digits, dots, hyphens and underscores"
        raise BadBody(f"name: {told}", FieldError(field="name", message=told))
    return name


def newest_first(
    history: Sequence[Fact], version_of: Callable[[Fact], V | None], window: Window
) -> tuple[list[V], bool]:
    """The versions in the window, and whether there are more after it."""
    versions = [version for recorded in reversed(history) if (version := version_of(recorded))]
    end = window.skip + window.take
    return versions[window.skip : end], len(versions) > end


def reply_with(version: Version | None, status: int, headers: dict[str, str]) -> web.Response:
    """Raise BrokenStream where the definition's stream has something else in it."""
    if version is None:
        raise BrokenStream("a definition's stream has something else in it")
    return reply(version, status=status, headers={"ETag": etag_of(version.version), **headers})


def _default(field: Any) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return field.default
