"""An answer that only a run's events decide: any host gives the same one, byte for byte, at any time."""

from collections.abc import Mapping

import msgspec
from aiohttp import web

from app.http.display import encode
from app.http.negotiation import JSON


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    status: int = 200
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = {}

    def response(self) -> web.Response:
        """Nobody may keep it: the next answer may differ."""
        return web.Response(
            body=self.body,
            status=self.status,
            content_type=self.content_type,
            headers={"Cache-Control": "no-store", **self.headers},
        )


def rendered(answer: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Rendered:
    """A struct as JSON."""
    return Rendered(status=status, body=encode(answer), headers=headers or {})
