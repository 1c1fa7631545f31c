"""Where a provider's requests go, and what stands in their headers."""

from collections.abc import Mapping
from typing import Any

import msgspec
from yarl import URL

from app.models.http import Post


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's address, without a slash at its end. No message may repeat any of its `secrets`."""

    base: str
    headers: Mapping[str, str] = {}
    secrets: tuple[str, ...] = ()

    def post(self, url: URL, body: Mapping[str, Any], *, stream: bool) -> Post:
        """A request with this body."""
        headers = {"Content-Type": "application/json", **self.headers}
        headers["Accept"] = "text/event-stream" if stream else "application/json"
        if stream:
            headers["Accept-Encoding"] = "identity"  # a compressed stream waits for its compressor
        return Post(url=url, headers=headers, body=msgspec.json.encode(body), secrets=self.secrets)

    def versioned(self, path: str, version: str = "v1") -> str:
        """The address of `path` under an API version, which the base may name already."""
        named = self.base.rpartition("/")[2]
        return f"{self.base}/{path}" if _is_version(named) else f"{self.base}/{version}/{path}"


def _is_version(segment: str) -> bool:
    return len(segment) > 1 and segment[0] == "v" and segment[1].isdigit()
