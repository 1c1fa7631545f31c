"""Errors as clients see them."""

import pytest

from app.db.errors import DatabaseUnusable, StoreUnavailable
from app.http.errors import BadBody, FieldError
from app.http.problems import is_crash, problem_of, retry_after
from domain.errors import Conflict, NotFound, Rejected, TraconError, Unavailable
from domain.parameters import BadParameter


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Rejected("no"), 400),
        (NotFound("no"), 404),
        (Conflict("no"), 409),
        (Unavailable("no"), 503),
    ],
)
def test_the_family_of_an_error_decides_its_status(error: TraconError, status: int) -> None:
    """HTTP-1"""
    told = problem_of(error)
    assert (told.status, told.code, told.detail) == (status, error.code, "no")
    assert told.type == f"urn:tracon:problem:{error.code}"


def test_a_crash_tells_nothing_of_itself() -> None:
    """HTTP-1"""
    for error in (KeyError("postgresql://user:password@db"), DatabaseUnusable("the password of db is wrong")):
        told = problem_of(error)
        assert is_crash(error)
        assert (told.status, told.code) == (500, "internal_error")
        assert "password" not in repr(told)


def test_a_store_that_is_away_is_told_without_its_address() -> None:
    """EVENT-8, HTTP-1"""
    told = problem_of(StoreUnavailable("[Errno 111] Connect call failed ('10.0.0.7', 5432)", 2.0))
    assert (told.status, told.code, told.retry_after_s) == (503, "store_unavailable", 2.0)
    assert "10.0.0.7" not in repr(told)


def test_an_error_that_knows_its_field_names_it() -> None:
    """HTTP-1"""
    told = problem_of(BadParameter("tone", "agent a has no parameter 'tone'"))
    assert told.errors == (FieldError(field="$.parameters.tone", message="agent a has no parameter 'tone'"),)
    assert problem_of(BadBody("x", *told.errors)).errors == told.errors


@pytest.mark.parametrize(("seconds", "header"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.2, 2), (30.0, 30)])
def test_retry_after_is_in_whole_seconds_and_never_zero(seconds: float, header: int) -> None:
    """EVENT-8"""
    assert retry_after(seconds) == header
