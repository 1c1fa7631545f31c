"""Durations as people write them in a settings file, as seconds in the code."""

import math
import re
from typing import Annotated

import msgspec

_DURATION = {"duration": True}

_LONGEST_S = 10 * 366 * 86400.0
"""Ten years. A longer wait is a slip of the pen, and calendars end."""

LONGEST_INTERVAL_S = 4_294_967.294
"""About 49.7 days: the longest period that a periodic duty may have (RECON-1)."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_S, extra=_DURATION)]
"""A length of time in seconds, zero included. A file may also say "40ms", "30s", "5m", "1h" or "00:05:00"."""

PositiveSeconds = Annotated[float, msgspec.Meta(gt=0, le=_LONGEST_S, extra=_DURATION)]

AnySeconds = Annotated[float, msgspec.Meta(ge=-_LONGEST_S, le=_LONGEST_S, extra=_DURATION)]
"""May be negative, where zero or less has a meaning of its own."""

Interval = Annotated[float, msgspec.Meta(ge=0.001, le=LONGEST_INTERVAL_S, extra=_DURATION)]

LeaseSeconds = Annotated[float, msgspec.Meta(ge=3, le=_LONGEST_S, extra=_DURATION)]
"""Shorter than three seconds, a lease would run out between its renewals (SINGLE-1)."""

_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = re.compile(r"([+-]?)((?:\d+(?:\.\d+)?(?:ms|[smhd]))+)", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])", re.ASCII)
_CLOCK = re.compile(r"([+-]?)(?:(\d{1,8})\.)?([01]?\d|2[0-3]):([0-5]?\d):([0-5]?\d(?:\.\d{1,9})?)", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)


def parse_duration(value: object) -> float:
    """Seconds. Raise ValueError with a sentence for anything that is not a finite length of time."""
    seconds = _parse(value)
    if seconds is None or not math.isfinite(seconds):
        raise ValueError(
            f'{value!r} is not a duration; write seconds or "40ms", "30s", "5m", "1h", "00:05:00"'
        )
    return seconds


def _parse(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _as_float(value)
    return _parse_text(value.strip()) if isinstance(value, str) else None


def _as_float(number: int | float) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def _parse_text(text: str) -> float | None:
    if _NUMBER.fullmatch(text):
        return float(text)
    if match := _AMOUNT.fullmatch(text):
        sign, parts = match.groups()
        return _signed(sign, sum(float(n) * _UNIT_S[unit] for n, unit in _PART.findall(parts)))
    if match := _CLOCK.fullmatch(text):
        sign, days, hours, minutes, seconds = match.groups()
        whole = (int(days or 0) * 24 + int(hours)) * 60 + int(minutes)
        return _signed(sign, whole * 60 + float(seconds))
    return None


def _signed(sign: str, seconds: float) -> float:
    return -seconds if sign == "-" else seconds
