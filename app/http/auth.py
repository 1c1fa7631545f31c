"""Who asks, for which tenant, and whether that is allowed (HTTP-4)."""

from collections.abc import Callable
from uuid import UUID

from aiohttp import web
from aiohttp.typedefs import Handler

from app.http.errors import RateLimited, ScopeMissing, Unauthenticated
from app.http.locality import is_local
from app.http.principal import LOCAL, Principal
from app.http.rate_limit import RateLimiter
from app.http.request_keys import PRINCIPAL
from app.http.route import route_of
from app.keys.key import is_meant_as_key, prefix_of
from app.keys.keyring import Keyring
from app.settings import AuthSettings

__all__ = ["GATEKEEPER", "Gatekeeper", "Principal", "authenticate"]

_KEY_REQUIRED = "Send a key: Authorization: Bearer <key>."
_NO_KEY = f"{_KEY_REQUIRED} Without one only clients on the service's own machine are served."
_NO_SUCH_KEY = "This key is not known, or it was revoked, or it has expired."


class Gatekeeper:
    """Turns what a request brings into a principal. `noted` is told which key was used, and does not wait."""

    def __init__(
        self, keyring: Keyring, noted: Callable[[UUID], None], settings: AuthSettings, limiter: RateLimiter
    ) -> None:
        self._keyring = keyring
        self._noted = noted
        self._required = settings.required
        self._limiter = limiter

    async def admit(self, request: web.Request) -> Principal:
        """Raise Unauthenticated, RateLimited, or StoreUnavailable where a key cannot be looked up now."""
        principal = await self._principal_of(request)
        if wait_s := self._limiter.take(principal.tenant):
            raise RateLimited(wait_s)
        return principal

    async def _principal_of(self, request: web.Request) -> Principal:
        presented = _bearer(request.headers.get("Authorization", ""))
        if is_meant_as_key(presented):
            return await self._holder(presented)
        # What was never a key of ours is no credential: OpenAI's clients cannot be made to send none.
        if self._required:
            raise Unauthenticated(_KEY_REQUIRED, presented=bool(presented))
        if not is_local(request.remote, request.headers):
            raise Unauthenticated(_NO_KEY, presented=bool(presented))
        return LOCAL

    async def _holder(self, secret: str) -> Principal:
        key = await self._keyring.find(secret)
        if key is None:
            raise Unauthenticated(_NO_SUCH_KEY, presented=True)
        self._noted(key.id)
        prefix = prefix_of(secret)
        return Principal(tenant=key.tenant, scopes=key.scopes, key_id=key.id, key_prefix=prefix)


GATEKEEPER = web.AppKey("gatekeeper", Gatekeeper)


@web.middleware
async def authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Behind it a request has a principal, with the scope of its route. Paths that lead nowhere want one too.

    A route without a scope is open to everybody.
    """
    route = route_of(request)
    if route is None or route.scope is not None:
        principal = request[PRINCIPAL] = await request.app[GATEKEEPER].admit(request)
        if route is not None and route.scope not in principal.scopes:
            raise ScopeMissing(str(route.scope), principal.scopes)
    return await handler(request)


def _bearer(header: str) -> str:
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
