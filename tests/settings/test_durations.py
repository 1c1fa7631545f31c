import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.settings import parse_duration

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("40ms", 0.04),
        ("30s", 30),
        ("1.5s", 1.5),
        ("5m", 300),
        ("1h", 3600),
        ("1d", 86400),
        ("1h30m", 5400),
        ("-5s", -5),
        ("00:05:00", 300),
        ("0:0:30", 30),
        ("00:00:00.5", 0.5),
        ("23:59:59", 86399),
        ("1.00:00:00", 86400),
        ("-00:00:01", -1),
        (" 30s ", 30),
        ("30", 30),
        ("0.25", 0.25),
        (30, 30),
        (0.04, 0.04),
    ],
)
def test_a_duration_is_written_in_many_ways(written: object, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "s",
        "5 minutes",
        "30S",
        "1e3",
        "5m30",
        "00:05",
        "24:00:00",
        "00:60:00",
        "nan",
        "inf",
        "-inf",
        "infinity",
        "\N{ARABIC-INDIC DIGIT THREE}s",
        "9" * 400,
        math.nan,
        math.inf,
        -math.inf,
        10**400,
        True,
        None,
        [30],
    ],
)
def test_anything_else_is_refused_by_name(written: object) -> None:
    with pytest.raises(ValueError, match="is not a duration; write seconds or"):
        parse_duration(written)


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)))
def test_an_amount_counts_its_unit(amount: int, unit: str) -> None:
    assert parse_duration(f"{amount}{unit}") == pytest.approx(amount * UNITS[unit])


@given(st.integers(0, 9999), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_clock_reads_as_the_time_it_shows(days: int, hours: int, minutes: int, seconds: int) -> None:
    written = f"{days}.{hours:02}:{minutes:02}:{seconds:02}"
    assert parse_duration(written) == days * 86400 + hours * 3600 + minutes * 60 + seconds


@given(st.text() | st.floats() | st.integers())
def test_whatever_is_written_it_is_a_finite_number_or_a_reason(written: object) -> None:
    with suppress(ValueError):
        assert math.isfinite(parse_duration(written))
