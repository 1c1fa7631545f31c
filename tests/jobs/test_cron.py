"""Due times across clock changes, in zones where those are odd."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobs.cron import BadCron, CronCalendar

BERLIN = "Europe/Berlin"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due(cron: str, zone: str, after: str, count: int) -> list[str]:
    calendar, moment, times = CronCalendar(cron, zone), utc(after), []
    for _ in range(count):
        following = calendar.after(moment)
        assert following is not None
        moment = following
        times.append(f"{moment:%m-%d %H:%M}")
    return times


def test_times_are_read_in_the_time_zone() -> None:
    """JOB-2: 9 o'clock in Berlin is 8 in winter and 7 in summer."""
    assert due("0 9 * * *", BERLIN, "2026-03-27T12:00", 3) == ["03-28 08:00", "03-29 07:00", "03-30 07:00"]


def test_a_time_that_the_clock_jumps_over_is_due_right_after() -> None:
    """JOB-2: 2:30 does not exist on 29 March; the clock goes from 2:00 to 3:00 at 1:00 UTC."""
    assert due("30 2 * * *", BERLIN, "2026-03-28T00:00", 3) == ["03-28 01:30", "03-29 01:00", "03-30 00:30"]


def test_a_time_that_the_clock_shows_twice_is_due_once() -> None:
    """JOB-2: on 25 October it is 2:30 at 0:30 UTC and at 1:30 UTC."""
    assert due("30 2 * * *", BERLIN, "2026-10-24T00:00", 3) == ["10-24 00:30", "10-25 00:30", "10-26 01:30"]


def test_who_looks_between_the_two_sees_the_next_day() -> None:
    assert due("30 2 * * *", BERLIN, "2026-10-25T00:45", 1) == ["10-26 01:30"]
    assert due("30 2 * * *", BERLIN, "2026-10-25T01:15", 1) == ["10-26 01:30"]


def test_every_hour_is_every_hour_of_real_time() -> None:
    spring = due("0 * * * *", BERLIN, "2026-03-28T23:30", 4)
    autumn = due("0 * * * *", BERLIN, "2026-10-24T23:30", 4)
    assert spring == ["03-29 00:00", "03-29 01:00", "03-29 02:00", "03-29 03:00"]
    assert autumn == ["10-25 00:00", "10-25 01:00", "10-25 02:00", "10-25 03:00"]


ZONES = ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
CRONS = [
    "30 2 * * *",
    "*/30 2 * * *",
    "0 * * * *",
    "30 */2 * * *",
    "15,45 1-3 * * *",
    "0 9 * * 1-5",
    "0 0 L * *",
]
CHANGES = st.sampled_from([utc("2026-03-28T00:00"), utc("2026-04-04T00:00"), utc("2026-10-24T00:00")])


@given(
    cron=st.sampled_from(CRONS),
    zone=st.sampled_from(ZONES),
    start=CHANGES,
    seconds=st.floats(0, 3 * 86400),
)
def test_what_is_after_a_moment_and_what_is_before_it_fit_together(
    cron: str, zone: str, start: datetime, seconds: float
) -> None:
    calendar, moment = CronCalendar(cron, zone), start + timedelta(seconds=seconds)
    following, last = calendar.after(moment), calendar.up_to(moment)
    assert following is not None
    assert last is not None
    assert last <= moment < following
    assert calendar.after(last) == following
    assert calendar.up_to(following) == following


@pytest.mark.parametrize(
    "cron", ["", "* * * *", "* * * * * *", "61 * * * *", "0 0 31 2 *", "@daily", "a b c d e"]
)
def test_what_is_no_cron_expression_is_refused(cron: str) -> None:
    with pytest.raises(BadCron) as caught:
        CronCalendar(cron, "UTC")
    assert caught.value.field == "cron"


@pytest.mark.parametrize("zone", ["", "Nowhere/Land", "Europe", "../etc/passwd", "/etc/passwd", "a\0b"])
def test_what_is_no_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(BadCron) as caught:
        CronCalendar("* * * * *", zone)
    assert caught.value.field == "time_zone"
