"""The one HTTP client of all adapters.

It never retries, follows no redirect, keeps no cookie and takes nothing from the environment.
"""

import io
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import aiohttp
import msgspec
from aiohttp.connector import Connection
from yarl import URL

from app.models.patience import STOPPING, TimeLimits
from app.models.port import MaySend, ModelCallError, NotSent, always

_LARGE_BODY_BYTES = 1024 * 1024


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `secrets` are the strings that no message may ever repeat."""

    url: URL
    headers: Mapping[str, str]
    body: bytes
    secrets: tuple[str, ...] = ()


_may_send: ContextVar[MaySend] = ContextVar("may_send", default=always)


class _Connector(aiohttp.TCPConnector):
    """Asks whether the request may still be made when its connection, which may take a while, is there."""

    async def connect(self, *args: Any, **options: Any) -> Connection:
        connection = await super().connect(*args, **options)
        if not _may_send.get()():
            connection.release()
            raise NotSent
        return connection


class HttpSession:
    """Connections to all providers, however many: how many calls may run is decided elsewhere."""

    def __init__(self, limits: TimeLimits | None = None) -> None:
        self.limits = limits or TimeLimits()
        self.closed = False
        self._session: aiohttp.ClientSession | None = None

    async def send(self, post: Post, connect_s: float, may_send: MaySend = always) -> aiohttp.ClientResponse:
        """The response, once its headers are there. The caller closes it."""
        _may_send.set(may_send)
        # aiohttp warns of a large body that is given as bytes.
        large = len(post.body) >= _LARGE_BODY_BYTES
        return await self._open().post(
            post.url,
            data=io.BytesIO(post.body) if large else post.body,
            headers=post.headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=connect_s),
        )

    async def get(self, url: URL, headers: Mapping[str, str], connect_s: float) -> aiohttp.ClientResponse:
        """The same for a question that asks for no answer of a model."""
        _may_send.set(always)
        timeout = aiohttp.ClientTimeout(total=None, connect=connect_s)
        return await self._open().get(url, headers=headers, allow_redirects=False, timeout=timeout)

    def _open(self) -> aiohttp.ClientSession:
        if self.closed:
            raise ModelCallError(STOPPING)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(limit=0, limit_per_host=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "tracon"},
                trust_env=False,
            )
        return self._session

    async def close(self) -> None:
        """Close every connection. Calls in flight fail, and so does every later one."""
        self.closed = True
        if self._session is not None:
            await self._session.close()
