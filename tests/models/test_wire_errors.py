"""What providers say about their failures, in every spelling that is about (CLASS-1, CLASS-4)."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from multidict import CIMultiDict

from app.models.wire_errors import WireError, error_in, failure_of_status, retry_after_s
from domain.failure import CallFailure, FailureKind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After-Ms": "250", "Retry-After": "60"}, 0.25),
        ({"Retry-After": "Sun, 29 Nov 2026 22:00:30 GMT", "Date": "Sun, 29 Nov 2026 22:00:00 GMT"}, 30.0),
        ({"Retry-After": "Sun, 29 Nov 2026 21:00:00 GMT", "Date": "Sun, 29 Nov 2026 22:00:00 GMT"}, 0.0),
        ({"Retry-After": "Sun, 29 Nov 2026 22:00:30 -0000", "Date": "Sun, 29 Nov 2026 22:00:00 GMT"}, 30.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_the_wait_that_is_asked_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(CIMultiDict(headers)) == seconds


def test_without_the_servers_clock_a_date_is_read_by_ours() -> None:
    due = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    seconds = retry_after_s({"Retry-After": due})
    assert seconds is not None
    assert 80 < seconds <= 90


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (
            {"error": {"message": "no", "type": "invalid_request_error", "code": "unsupported_value"}},
            WireError(message="no", code="unsupported_value", status=400),
        ),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "no"}},
            WireError(message="no", code="overloaded_error", status=529),
        ),
        (
            [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "no"}}],
            WireError(message="no", code="RESOURCE_EXHAUSTED", status=429),
        ),
        ({"error": "no", "code": 503}, WireError(message="no", status=503)),
        ({"type": "error", "message": "no", "code": None}, WireError(message="no")),
        ({"error": {"code": 200, "message": "no"}}, WireError(message="no")),
        ({"error": {"code": True, "message": "no"}}, WireError(message="no")),
        ({"message": "Internal Server Error"}, WireError(message="Internal Server Error")),
        ({"detail": "Not Found"}, None),
        ({"error": None}, None),
        ("no", None),
        ([], None),
    ],
)
def test_error_objects_of_every_family(value: Any, error: WireError | None) -> None:
    assert error_in(value) == error


def test_the_wait_in_a_body_counts_where_no_header_asks() -> None:
    info = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "7s"}]}}
    body = json.dumps(info).encode()
    assert failure_of_status(429, {}, body).retry_after_s == 7
    assert failure_of_status(429, {"Retry-After": "2"}, body).retry_after_s == 2


@pytest.mark.parametrize("wish", ["1e300", "999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_wait_of_years_is_cut_to_a_week(wish: str) -> None:
    """It goes on record, and into a header for whoever waits for the run."""
    assert retry_after_s({"Retry-After": wish, "Date": "Sun, 29 Nov 2026 22:00:00 GMT"}) == 604_800
    assert retry_after_s({"retry-after-ms": "1e300"}) == 604_800
    body = b'{"error": {"code": 429, "details": [{"retryDelay": "1e300s"}]}}'
    assert failure_of_status(429, {}, body).retry_after_s == 604_800


def test_a_page_leaves_its_status() -> None:
    failure = failure_of_status(502, {}, b"<html>Bad gateway</html>")
    assert failure == CallFailure(kind=FailureKind.STATUS, message="it answered 502", status=502)


def test_what_a_provider_goes_on_about_is_cut_to_a_line() -> None:
    body = json.dumps({"error": {"message": "no\n" * 10_000}}).encode()
    message = failure_of_status(400, {}, body).message
    assert "\n" not in message
    assert len(message) < 600


def test_json_that_is_too_deep_is_no_error_object() -> None:
    failure = failure_of_status(500, {}, b"[" * 100_000)
    assert (failure.status, failure.code) == (500, None)
