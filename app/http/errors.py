"""Refusals that only HTTP knows: wrong bodies, wrong types, callers that are not served."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from domain.errors import NotFound, TraconError


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and where: a path into the body (`$.message`) or a query parameter's name."""

    field: str
    message: str


class Refused(TraconError):
    """The request cannot be served as it is. Each kind carries the status that says so."""

    status: ClassVar[int] = 400
    code = "bad_request"
    headers: Mapping[str, str] = {}
    """What the answer says besides."""
    retry_after_s: float | None = None

    def __init__(self, message: str, *errors: FieldError) -> None:
        super().__init__(message)
        self.errors = errors


class BadBody(Refused):
    """The body is not what the route takes. `errors` names the field; correct it."""

    code = "bad_body"


class BadQuery(Refused):
    """A query parameter, or the Last-Event-ID header, is not what the route takes. Correct it."""

    code = "bad_query"


class NoSuchRun(NotFound):
    """What is in the path is no id of a run. It is as unknown as another tenant's (HTTP-2)."""

    code = "run_not_found"


class Unauthenticated(Refused):
    """Nobody knows who asks. Send a key that is in force, or call from the service's own machine."""

    status = 401
    code = "unauthenticated"

    def __init__(self, message: str, *, presented: bool) -> None:
        super().__init__(message)
        error = ', error="invalid_token"' if presented else ""
        self.headers = {"WWW-Authenticate": f'Bearer realm="tracon"{error}'}


class KeyEnded(Unauthenticated):
    """The key under which a stream was open is not in force any more. Watch the run with another one."""

    def __init__(self) -> None:
        super().__init__("The key of this stream was revoked, or has expired.", presented=True)


class ScopeMissing(Refused):
    """The key is not for this. Use one with the scope that is named."""

    status = 403
    code = "scope_missing"

    def __init__(self, scope: str, held: Iterable[str]) -> None:
        super().__init__(f"This needs a key with the scope {scope}; this one has {', '.join(sorted(held))}.")
        self.headers = {
            "WWW-Authenticate": f'Bearer realm="tracon", error="insufficient_scope", scope="{scope}"'
        }


class RateLimited(Refused):
    """The tenant sends more than `rate_limit` allows. Nothing was begun; come again after the wait."""

    status = 429
    code = "rate_limited"

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("This tenant sends more requests than rate_limit allows.")
        self.retry_after_s = retry_after_s


class NotAcceptable(Refused):
    """The route cannot answer in any type that the Accept header allows."""

    status = 406
    code = "not_acceptable"


class BodyTooLarge(Refused):
    """Send less, or raise server.max_body_bytes."""

    status = 413
    code = "body_too_large"


class BodyTimeout(Refused):
    """Send the body faster, or raise server.body_timeout. Nothing was begun."""

    status = 408
    code = "body_timeout"


class UnsupportedMediaType(Refused):
    """Say `Content-Type: application/json`, and send that, as it is or with `Content-Encoding: gzip`."""

    status = 415
    code = "unsupported_media_type"


class BadIdempotencyKey(Refused):
    """The Idempotency-Key cannot be used as it is. Nothing was begun."""

    code = "idempotency_key_invalid"


class NotWired(Refused):
    """This deployment does not do that. Nothing was begun; ask without it."""

    status = 501
    code = "not_wired"
