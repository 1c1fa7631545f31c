"""How model calls fail, and what each failure means for the chain and the circuit (CLASS)."""

from enum import StrEnum

import msgspec


class FailureClass(StrEnum):
    """The closed set of classes that decide retry, fallback and the circuit."""

    TRANSIENT = "transient"
    UNAVAILABLE = "unavailable"
    EMPTY = "empty"
    ERROR_PRE = "error_pre"
    AUTH = "auth"
    INVALID = "invalid"
    CONTENT_FILTERED = "content_filtered"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


class FailureKind(StrEnum):
    """What an adapter saw. It reports; it does not judge."""

    STATUS = "status"  # an HTTP status that is not a success
    CONNECT = "connect"  # refused, DNS, TLS, connect time-out: the request never went out
    SILENT = "silent"  # no headers or no first content in time
    RESET = "reset"  # the connection broke, or the body ended early
    STALLED = "stalled"  # silence between chunks after content
    REPORTED = "reported"  # a 200 whose stream or body reports an error
    UNREADABLE = "unreadable"  # an answer that is not what the wire format promises
    EMPTY = "empty"  # success with neither text nor a tool call
    CONTENT_FILTER = "content_filter"  # the provider's own filter ended the answer
    CIRCUIT_OPEN = "circuit_open"
    INTERNAL = "internal"  # it began here


class CallFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One failed model call, as the adapter saw it (CLASS-1). `retry_after_s` is the provider's own wish."""

    kind: FailureKind
    message: str
    status: int | None = None
    code: str | None = None
    retry_after_s: float | None = None
    content_delivered: bool = False


class ErrorClass(StrEnum):
    """The closed set of classes that a failed run is filed under."""

    PROVIDER = "Provider"
    QUOTA_EXCEEDED = "QuotaExceeded"
    TIMEOUT = "Timeout"
    CONTENT_FILTERED = "ContentFiltered"
    CONTENT_BLOCKED = "ContentBlocked"
    INFRASTRUCTURE = "Infrastructure"
    INVALID = "Invalid"
    INTERNAL = "Internal"


class RunError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run failed: a sentence for people, a type for machines, a class for statistics."""

    message: str
    type: str
    error_class: ErrorClass
    retry_after_s: float | None = None
    """When it may be worth trying again, where somebody knows."""


_UNAVAILABLE_STATUS = frozenset({429, 503, 529})
_TRANSIENT_STATUS = frozenset({408, 500, 502, 504})
# Codes that say more than the status they come with.
_OF_CODE = {
    "overloaded_error": FailureClass.UNAVAILABLE,
    "UNAVAILABLE": FailureClass.UNAVAILABLE,
    "insufficient_quota": FailureClass.UNAVAILABLE,  # a 429 that no wait will cure
    "content_filter": FailureClass.CONTENT_FILTERED,
    "content_policy_violation": FailureClass.CONTENT_FILTERED,
}
# An error told inside a 200 has only its code. Each stands for the status it has outside of one.
_STATUS_OF_CODE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "permission_denied": 403,
    "internal_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "server_overloaded": 503,
    "insufficient_quota": 429,
    "overloaded_error": 529,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "FAILED_PRECONDITION": 400,
    "INVALID_ARGUMENT": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "UNKNOWN": 500,
    "DEADLINE_EXCEEDED": 504,
}
_OF_KIND = {
    FailureKind.CONNECT: FailureClass.UNAVAILABLE,
    FailureKind.SILENT: FailureClass.UNAVAILABLE,
    FailureKind.CIRCUIT_OPEN: FailureClass.UNAVAILABLE,
    FailureKind.RESET: FailureClass.TRANSIENT,
    FailureKind.STALLED: FailureClass.TRANSIENT,
    FailureKind.UNREADABLE: FailureClass.TRANSIENT,
    FailureKind.EMPTY: FailureClass.EMPTY,
    FailureKind.CONTENT_FILTER: FailureClass.CONTENT_FILTERED,
    FailureKind.INTERNAL: FailureClass.INTERNAL,
}


def classify(failure: CallFailure, *, retry_after_cap_s: float = 2.0) -> FailureClass:
    """Map what an adapter saw to its class (the CLASS table). Pure and total."""
    if failure.kind in _OF_KIND:
        return _OF_KIND[failure.kind]
    if failure.code in _OF_CODE:
        return _OF_CODE[failure.code]
    status = _status_of(failure)
    if status is None:
        return FailureClass.ERROR_PRE if failure.kind is FailureKind.REPORTED else FailureClass.TRANSIENT
    return _of_status(status, failure.retry_after_s, retry_after_cap_s)


def _status_of(failure: CallFailure) -> int | None:
    """The status of the response; where that is a success or unread, the one that the code stands for."""
    if failure.status is not None and (failure.status >= 400 or failure.kind is FailureKind.STATUS):
        return failure.status
    return status_of_code(failure.code or "")


def status_of_code(code: str) -> int | None:
    """The status that a provider sends this code with; None for a code that nobody knows."""
    if len(code) == 3 and code.isascii() and code.isdigit() and code[0] in "45":
        return int(code)
    return _STATUS_OF_CODE.get(code)


def _of_status(status: int, retry_after_s: float | None, cap_s: float) -> FailureClass:
    if status == 429 and retry_after_s is not None and retry_after_s <= cap_s:
        return FailureClass.TRANSIENT
    if status in _UNAVAILABLE_STATUS:
        return FailureClass.UNAVAILABLE
    if status in (401, 403):
        return FailureClass.AUTH
    if status in _TRANSIENT_STATUS or not 400 <= status < 500:
        return FailureClass.TRANSIENT
    return FailureClass.INVALID


def silence_until_deadline(waited_s: float, turn_s: float) -> CallFailure | None:
    """What a call was that had nothing of its answer when its run's deadline came (CLASS-2).

    The deadline is the only limit of the last link, so the silence is one like any other. But a call that had
    only what others had left of the time says nothing: it counts if it had half of a turn's time, at least.
    """
    if waited_s < turn_s / 2:
        return None
    message = f"no content within {waited_s:.3g} s, when the run's time was over"
    return CallFailure(kind=FailureKind.SILENT, message=message)


BY_INTENT = frozenset({FailureClass.CONTENT_FILTERED, FailureClass.CANCELLED, FailureClass.INTERNAL})
"""These end an answer on purpose; whatever was delivered, the stream did not break."""

_OWN_ERRORS = {
    FailureClass.AUTH: ("provider_auth", ErrorClass.PROVIDER),
    FailureClass.INVALID: ("provider_rejected", ErrorClass.INVALID),
    FailureClass.CONTENT_FILTERED: ("content_filtered", ErrorClass.CONTENT_FILTERED),
    FailureClass.CANCELLED: ("cancelled", ErrorClass.INTERNAL),
    FailureClass.INTERNAL: ("internal_error", ErrorClass.INTERNAL),
}


def error_of(provider: str, failure_class: FailureClass, failure: CallFailure) -> RunError:
    """The error of a run whose only link failed (CHAIN-1). After content it is `stream_error` (CHAIN-7)."""
    if failure.content_delivered and failure_class not in BY_INTENT:
        return RunError(
            message=f"provider {provider} broke off in the middle of its answer: {failure.message}",
            type="stream_error",
            error_class=ErrorClass.PROVIDER,
        )
    message = f"provider {provider} failed ({failure_class}): {failure.message}"
    if failure_class in _OWN_ERRORS:
        error_type, error_class = _OWN_ERRORS[failure_class]
        return RunError(message=message, type=error_type, error_class=error_class)
    return RunError(
        message=message,
        type="provider_unavailable",
        error_class=ErrorClass.PROVIDER,
        retry_after_s=failure.retry_after_s,
    )
