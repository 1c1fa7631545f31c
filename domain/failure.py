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


_UNAVAILABLE_STATUS = frozenset({429, 503, 529})
_TRANSIENT_STATUS = frozenset({408, 500, 502, 504})
_UNAVAILABLE_CODES = frozenset(
    {"overloaded_error", "insufficient_quota", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
)
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
    if failure.code in _UNAVAILABLE_CODES:
        return FailureClass.UNAVAILABLE
    if failure.status is None:
        return FailureClass.ERROR_PRE if failure.kind is FailureKind.REPORTED else FailureClass.TRANSIENT
    return _of_status(failure.status, failure.retry_after_s, retry_after_cap_s)


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


_OWN_ERRORS = {
    FailureClass.AUTH: ("provider_auth", ErrorClass.PROVIDER),
    FailureClass.INVALID: ("provider_rejected", ErrorClass.INVALID),
    FailureClass.CONTENT_FILTERED: ("content_filtered", ErrorClass.CONTENT_FILTERED),
    FailureClass.INTERNAL: ("internal_error", ErrorClass.INTERNAL),
}


def error_of(provider: str, failure_class: FailureClass, failure: CallFailure) -> RunError:
    """The error of a run whose only link failed (CHAIN-1); a failure after content is `stream_error` (CHAIN-7)."""
    if failure.content_delivered:
        return RunError(
            message=f"provider {provider} broke off in the middle of its answer: {failure.message}",
            type="stream_error",
            error_class=ErrorClass.PROVIDER,
        )
    error_type, error_class = _OWN_ERRORS.get(failure_class, ("provider_unavailable", ErrorClass.PROVIDER))
    return RunError(
        message=f"provider {provider} failed ({failure_class}): {failure.message}",
        type=error_type,
        error_class=error_class,
    )
