"""Quotas: when periods begin and end, and whom a limit admits (BUDGET-6)."""

from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.failure import ErrorClass
from domain.quota import Metric, Period, Quota, QuotaExceeded, Standing, first_refusing


def standing(metric: Metric, used: object, limit: object = 10, period: Period = Period.DAY) -> Standing:
    today = date(2026, 12, 31)
    quota = Quota(name="q", metric=metric, period=period, limit=Decimal(str(limit)), agent="a")
    return Standing(quota=quota, used=Decimal(str(used)), resets_at=period.end(today))


@given(st.dates(min_value=date(1990, 1, 1), max_value=date(2200, 12, 31)))
def test_every_day_is_in_its_periods(today: date) -> None:
    for period in Period:
        assert period.start(today) <= today
        assert period.end(today) > datetime(today.year, today.month, today.day, 23, 59, tzinfo=UTC)
        following = period.end(today).date()
        assert period.start(following) == following


def test_a_year_ends_as_a_month_does() -> None:
    assert Period.MONTH.end(date(2026, 12, 31)) == datetime(2027, 1, 1, tzinfo=UTC)
    assert Period.MONTH.end(date(2028, 2, 1)) == datetime(2028, 3, 1, tzinfo=UTC)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50))
def test_runs_are_admitted_up_to_the_limit_and_not_one_more(used: int, limit: int, asked: int) -> None:
    """BUDGET-6: remaining 0 is 0."""
    assert standing(Metric.RUNS, used, limit).admits(asked) == (used + asked <= limit)


@pytest.mark.parametrize("metric", [Metric.TOKENS, Metric.COST])
def test_what_is_spent_is_known_when_it_is_spent(metric: Metric) -> None:
    assert standing(metric, "9.99").admits(1000)
    assert not standing(metric, 10).admits(1)
    assert not standing(metric, 0, limit=0).admits(1)


def test_the_refusal_names_metric_period_limit_and_setting() -> None:
    """BUDGET-6"""
    spent = standing(Metric.COST, "12.50", "10")
    for part in ("cost", "day", "10", "12.5", "'a'", "2027-01-01", "quotas.q.limit"):
        assert part in spent.refusal
    assert (spent.error.type, spent.error.error_class) == ("tenant_quota_exceeded", ErrorClass.QUOTA_EXCEEDED)
    refused = QuotaExceeded(spent, datetime(2026, 12, 31, 23, 0, tzinfo=UTC))
    assert refused.retry_after_s == 3600


def test_of_several_the_one_that_lasts_longest_is_told() -> None:
    day = standing(Metric.RUNS, 10)
    month = msgspec.structs.replace(day, resets_at=datetime(2027, 2, 1, tzinfo=UTC))
    free = standing(Metric.RUNS, 1)
    assert first_refusing([free, day, month, day], lambda _: 1) is month
    assert first_refusing([free], lambda _: 1) is None


def test_a_quota_concerns_whom_it_names() -> None:
    own = Quota(name="q", metric=Metric.RUNS, period=Period.DAY, limit=Decimal(1), tenant="t")
    assert own.concerns("t", "any")
    assert not own.concerns("u", "any")
