"""Answers that are not streams."""

from collections.abc import Mapping

from aiohttp import web

from app.http.display import encode
from app.http.negotiation import JSON


def reply(answer: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A struct as JSON. Nobody may keep it: the next answer may differ."""
    return web.Response(
        body=encode(answer),
        status=status,
        content_type=JSON,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )
