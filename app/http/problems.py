"""Errors as clients see them: RFC 9457 problems, mapped once, by family (HTTP-1)."""

import math
from datetime import datetime
from http import HTTPStatus

import msgspec
from aiohttp import web

from app.http.errors import FieldError, Refused
from app.http.openai.error_object import ApiError, error_object
from app.http.request_keys import REQUEST_ID
from domain.errors import Conflict, NotFound, Rejected, Unavailable
from domain.idempotency import KeyReused
from domain.quota import Quota, QuotaExceeded
from domain.versions import VersionMoved
from projections.run_record import RunRecord

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why there is no answer. `code` is stable and for machines, `detail` is for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str | None = None
    request_id: str | None = None
    errors: tuple[FieldError, ...] = ()
    run: RunRecord | None = None
    """The whole run, where the problem is that it ended without an answer."""
    retry_after_s: msgspec.UnsetType | float = msgspec.UNSET
    last_event_id: msgspec.UnsetType | int = msgspec.UNSET
    """At the end of a stream that was cut: its last event. With it, any other host goes on from there."""
    quota: Quota | None = None
    """The quota that is used up, where that is the problem."""
    resets_at: datetime | None = None
    """When it begins again."""
    error: ApiError | None = None
    """The same for clients that look for OpenAI's error object."""


_STATUS_OF_FAMILY = (
    (KeyReused, 422),
    (VersionMoved, 412),
    (QuotaExceeded, 429),
    (NotFound, 404),
    (Conflict, 409),
    (Rejected, 400),
)
# What the driver said names addresses and belongs in the log.
_STORE_AWAY = "The event store cannot be reached now. What was not acknowledged was not begun."
_CRASHED = "The service failed to answer. Its log has the cause under this request's id."


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: tuple[FieldError, ...] = (),
    run: RunRecord | None = None,
    retry_after_s: float | None = None,
) -> Problem:
    return Problem(
        type=f"urn:tracon:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        errors=errors,
        run=run,
        retry_after_s=msgspec.UNSET if retry_after_s is None else retry_after_s,
    )


def problem_of(error: Exception) -> Problem:
    """The problem that tells of this error. What is not an error of ours is a crash, and tells nothing."""
    match error:
        case Refused():
            return problem(
                error.status, error.code, str(error), errors=error.errors, retry_after_s=error.retry_after_s
            )
        case Unavailable():
            detail = _STORE_AWAY if error.code == "store_unavailable" else str(error)
            return problem(503, error.code, detail, retry_after_s=error.retry_after_s)
        case QuotaExceeded(standing=standing):
            told = _of_family(error)
            return msgspec.structs.replace(told, quota=standing.quota, resets_at=standing.resets_at)
        case Rejected() | NotFound() | Conflict():
            return _of_family(error)
        case web.HTTPException():
            return _of_aiohttp(error)
        case _:
            return problem(500, "internal_error", _CRASHED)


def is_crash(error: Exception) -> bool:
    """Whether this is no answer to a client but somebody's defect."""
    return not isinstance(error, Refused | Unavailable | Rejected | NotFound | Conflict | web.HTTPException)


def _of_family(error: Rejected | NotFound | Conflict) -> Problem:
    status = next(status for family, status in _STATUS_OF_FAMILY if isinstance(error, family))
    field = getattr(error, "field", None)
    told = ((field, str(error)),) if field else getattr(error, "problems", ())
    errors = tuple(FieldError(field=f"$.{key}", message=reason) for key, reason in told)
    wait_s: float | None = getattr(error, "retry_after_s", None)
    return problem(status, error.code, str(error), errors=errors, retry_after_s=wait_s)


def _of_aiohttp(error: web.HTTPException) -> Problem:
    match error:
        case web.HTTPNotFound():
            return problem(
                404, "no_such_route", "There is nothing at this path; /openapi.json lists what there is."
            )
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            return problem(405, "method_not_allowed", f"This path answers {allowed}.")
        case web.HTTPExpectationFailed():
            return problem(417, "expectation_failed", "The only expectation that is met is 100-continue.")
        case web.HTTPRequestEntityTooLarge():
            return problem(413, "body_too_large", "The body is longer than server.max_body_bytes allows.")
        case _:
            return problem(error.status, "http_error", error.reason)


def encoded(told: Problem) -> bytes:
    """The problem as it is sent: with an error object for clients of OpenAI's API."""
    return msgspec.json.encode(msgspec.structs.replace(told, error=error_of(told)))


def response_of(told: Problem, request: web.Request) -> web.Response:
    """The problem as an answer to this request."""
    told = msgspec.structs.replace(told, instance=request.path, request_id=request.get(REQUEST_ID))
    headers = {}
    if told.retry_after_s is not msgspec.UNSET:
        headers["Retry-After"] = str(retry_after(told.retry_after_s))
    return web.Response(body=encoded(told), status=told.status, content_type=MEDIA_TYPE, headers=headers)


def error_of(told: Problem) -> ApiError:
    """The problem in OpenAI's words."""
    field = told.errors[0].field if told.errors else None
    return error_object(told.status, told.code, told.detail, field=field, of_run=told.run is not None)


def retry_after(seconds: float) -> int:
    """Whole seconds, as the header wants them; never zero, which would invite a storm."""
    return max(1, math.ceil(seconds))
