"""What each failure means, as the table of failure classes has it (CLASS)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.failure import (
    CallFailure,
    ErrorClass,
    FailureClass,
    FailureKind,
    RunError,
    classify,
    error_of,
    silence_until_deadline,
)
from tests.domain.strategies import call_failures

TRANSIENT, UNAVAILABLE, EMPTY, ERROR_PRE = (
    FailureClass.TRANSIENT,
    FailureClass.UNAVAILABLE,
    FailureClass.EMPTY,
    FailureClass.ERROR_PRE,
)
AUTH, INVALID, FILTERED, CANCELLED, INTERNAL = (
    FailureClass.AUTH,
    FailureClass.INVALID,
    FailureClass.CONTENT_FILTERED,
    FailureClass.CANCELLED,
    FailureClass.INTERNAL,
)


def seen(
    kind: FailureKind,
    status: int | None = None,
    *,
    code: str | None = None,
    retry_after_s: float | None = None,
    content_delivered: bool = False,
) -> CallFailure:
    return CallFailure(
        kind=kind,
        message="as seen",
        status=status,
        code=code,
        retry_after_s=retry_after_s,
        content_delivered=content_delivered,
    )


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (408, TRANSIENT),
        (500, TRANSIENT),
        (502, TRANSIENT),
        (504, TRANSIENT),
        (501, TRANSIENT),
        (520, TRANSIENT),
        (302, TRANSIENT),
        (0, TRANSIENT),
        (999, TRANSIENT),
        (None, TRANSIENT),
        (503, UNAVAILABLE),
        (529, UNAVAILABLE),
        (429, UNAVAILABLE),
        (401, AUTH),
        (403, AUTH),
        (400, INVALID),
        (402, INVALID),
        (404, INVALID),
        (409, INVALID),
        (413, INVALID),
        (422, INVALID),
        (451, INVALID),
        (499, INVALID),
    ],
)
def test_a_status_has_its_class(status: int | None, expected: FailureClass) -> None:
    """CLASS-1. A status that cannot be read is transient."""
    assert classify(seen(FailureKind.STATUS, status)) is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FailureKind.CONNECT, UNAVAILABLE),
        (FailureKind.SILENT, UNAVAILABLE),
        (FailureKind.CIRCUIT_OPEN, UNAVAILABLE),
        (FailureKind.RESET, TRANSIENT),
        (FailureKind.STALLED, TRANSIENT),
        (FailureKind.UNREADABLE, TRANSIENT),
        (FailureKind.REPORTED, ERROR_PRE),
        (FailureKind.EMPTY, EMPTY),
        (FailureKind.CONTENT_FILTER, FILTERED),
        (FailureKind.INTERNAL, INTERNAL),
    ],
)
@pytest.mark.parametrize("status", [None, 200])
def test_what_has_no_error_status_has_the_class_of_its_kind(
    kind: FailureKind, status: int | None, expected: FailureClass
) -> None:
    """CLASS-1. An HTML page or a broken event under a 200 is unreadable; nothing is read from its text."""
    assert classify(seen(kind, status)) is expected


@pytest.mark.parametrize(
    ("retry_after_s", "expected"),
    [
        (None, UNAVAILABLE),
        (0.0, TRANSIENT),
        (2.0, TRANSIENT),
        (2.001, UNAVAILABLE),
        (3600.0, UNAVAILABLE),
        (-1.0, TRANSIENT),
        (float("inf"), UNAVAILABLE),
        (float("nan"), UNAVAILABLE),
    ],
)
@pytest.mark.parametrize("code", [None, "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"])
def test_a_429_is_worth_a_retry_only_when_the_wait_is_short(
    retry_after_s: float | None, code: str | None, expected: FailureClass
) -> None:
    """CLASS: a 429 whose `Retry-After` is at most `chain.retry_after_cap` is transient."""
    assert classify(seen(FailureKind.STATUS, 429, code=code, retry_after_s=retry_after_s)) is expected


def test_the_longest_wait_worth_a_retry_is_a_setting() -> None:
    limited = seen(FailureKind.STATUS, 429, retry_after_s=5.0)
    assert classify(limited, retry_after_cap_s=5.0) is TRANSIENT
    assert classify(limited, retry_after_cap_s=4.9) is UNAVAILABLE


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (429, "insufficient_quota", UNAVAILABLE),
        (500, "overloaded_error", UNAVAILABLE),
        (529, "overloaded_error", UNAVAILABLE),
        (503, "UNAVAILABLE", UNAVAILABLE),
        (400, "content_filter", FILTERED),
        (400, "context_length_exceeded", INVALID),
        (404, "model_not_found", INVALID),
        (502, "invalid_request_error", TRANSIENT),
        (401, "rate_limit_error", AUTH),
    ],
)
def test_a_code_overrules_its_status_only_where_it_says_more(
    status: int, code: str, expected: FailureClass
) -> None:
    """CLASS-4."""
    assert classify(seen(FailureKind.STATUS, status, code=code)) is expected


def test_no_short_wait_cures_a_spent_quota() -> None:
    """CLASS-4."""
    spent = seen(FailureKind.STATUS, 429, code="insufficient_quota", retry_after_s=0.5)
    assert classify(spent) is UNAVAILABLE


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("overloaded_error", UNAVAILABLE),
        ("rate_limit_error", UNAVAILABLE),
        ("api_error", TRANSIENT),
        ("timeout_error", TRANSIENT),
        ("authentication_error", AUTH),
        ("permission_error", AUTH),
        ("billing_error", INVALID),
        ("not_found_error", INVALID),
        ("invalid_request_error", INVALID),
        ("request_too_large", INVALID),
        ("insufficient_quota", UNAVAILABLE),
        ("rate_limit_exceeded", UNAVAILABLE),
        ("server_error", TRANSIENT),
        ("invalid_api_key", AUTH),
        ("context_length_exceeded", INVALID),
        ("model_not_found", INVALID),
        ("content_filter", FILTERED),
        ("RESOURCE_EXHAUSTED", UNAVAILABLE),
        ("UNAVAILABLE", UNAVAILABLE),
        ("INTERNAL", TRANSIENT),
        ("DEADLINE_EXCEEDED", TRANSIENT),
        ("UNAUTHENTICATED", AUTH),
        ("PERMISSION_DENIED", AUTH),
        ("NOT_FOUND", INVALID),
        ("INVALID_ARGUMENT", INVALID),
        ("FAILED_PRECONDITION", INVALID),
        ("429", UNAVAILABLE),
        ("503", UNAVAILABLE),
        ("401", AUTH),
        ("400", INVALID),
        ("200", ERROR_PRE),
        ("4290", ERROR_PRE),
        ("\u0664\u0662\u0669", ERROR_PRE),
        ("never_heard_of", ERROR_PRE),
        ("", ERROR_PRE),
        (None, ERROR_PRE),
    ],
)
@pytest.mark.parametrize("status", [None, 200])
def test_an_error_told_inside_a_success_has_the_class_of_its_code(
    status: int | None, code: str | None, expected: FailureClass
) -> None:
    """CLASS `error_pre`: its own code decides the class when it has one."""
    assert classify(seen(FailureKind.REPORTED, status, code=code)) is expected


def test_a_status_told_inside_a_success_counts_like_one_outside() -> None:
    assert classify(seen(FailureKind.REPORTED, 429)) is UNAVAILABLE
    assert classify(seen(FailureKind.REPORTED, 429, retry_after_s=1.0)) is TRANSIENT
    assert classify(seen(FailureKind.REPORTED, 401)) is AUTH


@given(failure=call_failures(), cap_s=st.floats())
def test_every_failure_has_a_class(failure: CallFailure, cap_s: float) -> None:
    """CLASS-1: one pure function, and it is total."""
    found = classify(failure, retry_after_cap_s=cap_s)
    assert found in FailureClass
    assert found is classify(failure, retry_after_cap_s=cap_s)


@given(failure=call_failures(), text=st.text())
def test_the_text_of_a_message_decides_nothing(failure: CallFailure, text: str) -> None:
    """CLASS-4: the status is read from the response, never from words."""
    told = CallFailure(
        kind=failure.kind,
        message=f"HTTP 401 {text}",
        status=failure.status,
        code=failure.code,
        retry_after_s=failure.retry_after_s,
    )
    assert classify(told) is classify(failure)


@pytest.mark.parametrize(
    ("failure_class", "error_type", "error_class"),
    [
        (TRANSIENT, "provider_unavailable", ErrorClass.PROVIDER),
        (UNAVAILABLE, "provider_unavailable", ErrorClass.PROVIDER),
        (EMPTY, "provider_unavailable", ErrorClass.PROVIDER),
        (ERROR_PRE, "provider_unavailable", ErrorClass.PROVIDER),
        (AUTH, "provider_auth", ErrorClass.PROVIDER),
        (INVALID, "provider_rejected", ErrorClass.INVALID),
        (FILTERED, "content_filtered", ErrorClass.CONTENT_FILTERED),
        (CANCELLED, "cancelled", ErrorClass.INTERNAL),
        (INTERNAL, "internal_error", ErrorClass.INTERNAL),
    ],
)
def test_the_failure_of_an_only_link_is_the_runs_own(
    failure_class: FailureClass, error_type: str, error_class: ErrorClass
) -> None:
    """CHAIN-1."""
    error = error_of("primary", failure_class, seen(FailureKind.STATUS, 500))
    told = f"provider primary failed ({failure_class}): as seen"
    assert error == RunError(message=told, type=error_type, error_class=error_class)


@pytest.mark.parametrize("failure_class", [TRANSIENT, UNAVAILABLE, ERROR_PRE, AUTH, INVALID])
def test_a_failure_after_content_is_a_broken_stream(failure_class: FailureClass) -> None:
    """CHAIN-7."""
    cut = seen(FailureKind.RESET, content_delivered=True)
    assert error_of("primary", failure_class, cut) == RunError(
        message="provider primary broke off in the middle of its answer: as seen",
        type="stream_error",
        error_class=ErrorClass.PROVIDER,
    )


@pytest.mark.parametrize(
    ("failure_class", "error_type"), [(FILTERED, "content_filtered"), (INTERNAL, "internal_error")]
)
def test_an_answer_ended_on_purpose_is_no_broken_stream(failure_class: FailureClass, error_type: str) -> None:
    told = seen(FailureKind.CONTENT_FILTER, content_delivered=True)
    assert error_of("primary", failure_class, told).type == error_type


def test_a_silence_until_the_deadline_is_one_like_any_other() -> None:
    """CLASS-2: the deadline is the only limit that the last link has."""
    silence = silence_until_deadline(600.0, 600.0)
    assert silence is not None
    assert (silence.kind, classify(silence)) == (FailureKind.SILENT, UNAVAILABLE)
    assert silence.message == "no content within 600 s, when the run's time was over"


@pytest.mark.parametrize(("waited_s", "counts"), [(0.0, False), (299.9, False), (300.0, True), (599.0, True)])
def test_a_call_that_had_less_than_half_of_a_turns_time_says_nothing(waited_s: float, counts: bool) -> None:
    """CLASS-2."""
    assert (silence_until_deadline(waited_s, 600.0) is not None) == counts
