"""What a request says it has seen of a thing, before it changes it: If-Match and If-None-Match."""

import re

from aiohttp import web

from app.http.errors import BadQuery, FieldError
from domain.versions import Expected

_ETAG = re.compile(r'"(\d{1,9})"')


def etag_of(version: int) -> str:
    return f'"{version}"'


def expected_by(request: web.Request) -> Expected:
    """`If-Match: "3"` is version 3, `If-Match: *` any that is there, `If-None-Match: *` none.

    Raise BadQuery.
    """
    match, none_match = request.headers.get("If-Match"), request.headers.get("If-None-Match")
    if none_match is not None:
        if none_match.strip() != "*" or match is not None:
            raise _wrong("If-None-Match", "is * here, and stands alone")
        return Expected(exists=False)
    if match is None:
        return Expected()
    if match.strip() == "*":
        return Expected(exists=True)
    found = _ETAG.fullmatch(match.strip())
    if found is None:
        raise _wrong("If-Match", 'is the ETag of one version, like "3", or *')
    return Expected(version=int(found[1]))


def _wrong(name: str, told: str) -> BadQuery:
    return BadQuery(f"{name} {told}.", FieldError(field=name, message=told))
