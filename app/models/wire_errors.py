"""What a provider says about its failures, read from status, headers and error objects, never from prose."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from domain.failure import CallFailure, FailureKind, status_of_code

_MAX_MESSAGE = 500
_LONGEST_WISH_S = 7 * 24 * 3600.0
"""Nobody comes back later than that; a larger number is somebody's mistake."""


class WireError(msgspec.Struct, frozen=True, kw_only=True):
    """An error object, of whichever family of providers."""

    message: str = ""
    code: str | None = None
    status: int | None = None
    retry_after_s: float | None = None


def read_error(body: bytes) -> WireError | None:
    """The error object in a body; None where there is none."""
    try:
        return error_in(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def error_in(value: Any) -> WireError | None:
    """The error object in decoded JSON: bare, under `error`, or in a list of one."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return None
    error = value.get("error", value)
    if isinstance(error, str) and error:
        return WireError(message=error, code=_text(value.get("code")), status=_status(value.get("code")))
    if not isinstance(error, dict) or not error.keys() & {"message", "code", "type", "status"}:
        return None
    return _from_object(error)


def failure_of_status(status: int, headers: Mapping[str, str], body: bytes) -> CallFailure:
    """A status that is not a success."""
    error = read_error(body) or WireError()
    asked_s = retry_after_s(headers)
    return CallFailure(
        kind=FailureKind.STATUS,
        message=_sentence(f"it answered {status}", error),
        status=status,
        code=error.code,
        retry_after_s=error.retry_after_s if asked_s is None else asked_s,
    )


def failure_reported(error: WireError) -> CallFailure:
    """An error inside of a success: its own code decides (CLASS: error_pre)."""
    return CallFailure(
        kind=FailureKind.REPORTED,
        message=_sentence("it reported an error", error),
        status=error.status,
        code=error.code,
        retry_after_s=error.retry_after_s,
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that the provider asks for: `retry-after-ms`, or `Retry-After` as seconds or as a date."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded_wish(milliseconds / 1000)
    asked = headers.get("Retry-After")
    seconds = _seconds(asked)
    return _bounded_wish(_until(asked, headers.get("Date")) if seconds is None and asked else seconds)


def bounded(text: str, limit: int = _MAX_MESSAGE) -> str:
    """A provider's sentence on one line, cut where it goes on for too long."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}..."


def _from_object(error: dict[str, Any]) -> WireError:
    named = [_text(error.get(key)) for key in ("code", "status", "type")]
    named = [None if name == "error" else name for name in named]  # the type of an event, not of its cause
    code = next((name for name in named if name is not None), None)
    known = (status_of_code(name) for name in named if name is not None)
    number = _status(error.get("code")) or _status(error.get("status"))
    return WireError(
        message=_text(error.get("message")) or "",
        code=code,
        status=number or next((status for status in known if status is not None), None),
        retry_after_s=_retry_info_s(error.get("details")),
    )


def _retry_info_s(details: Any) -> float | None:
    """Gemini says in the body how long to wait: a detail with a `retryDelay` of "7s"."""
    delays = (
        (d.get("retryDelay") for d in details if isinstance(d, dict)) if isinstance(details, list) else ()
    )
    wishes = (_seconds(delay.removesuffix("s")) for delay in delays if isinstance(delay, str))
    return _bounded_wish(next(wishes, None))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value and not value.isdigit() else None


def _status(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:4])
    return value if isinstance(value, int) and 400 <= value <= 599 else None


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return max(value, 0.0) if math.isfinite(value) else None


def _bounded_wish(seconds: float | None) -> float | None:
    return None if seconds is None else min(seconds, _LONGEST_WISH_S)


def _until(date: str, server_date: str | None) -> float | None:
    """Seconds until a date, by the server's own clock where it told it."""
    try:
        due = _utc(parsedate_to_datetime(date))
        now = _utc(parsedate_to_datetime(server_date)) if server_date else datetime.now(UTC)
    except ValueError:
        return None
    return max((due - now).total_seconds(), 0.0)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _sentence(what: str, error: WireError) -> str:
    code = f" ({error.code})" if error.code else ""
    return f"{what}{code}: {bounded(error.message)}" if error.message else f"{what}{code}"
