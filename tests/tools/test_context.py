"""What a tool may say about its call."""

import logging
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from app.tools.context import ToolUsage
from tests.tools.calls import CONTEXT


@pytest.mark.parametrize(
    ("amount", "exact"),
    [
        (None, None),
        ("0.10", Decimal("0.10")),
        (0.1, Decimal("0.1")),
        (3, Decimal(3)),
        (Decimal(0), Decimal(0)),
    ],
)
def test_usage_is_told_at_once_and_exactly(amount: Any, exact: Decimal | None) -> None:
    """BUDGET-3: what tools report counts at once."""
    told: list[ToolUsage] = []
    context = msgspec.structs.replace(CONTEXT, on_usage=told.append)
    context.report_usage(amount, "USD", "speech")
    assert told == [ToolUsage(kind="speech", amount=exact, currency="USD")]


@pytest.mark.parametrize("amount", ["much", -1, float("nan"), float("inf")])
def test_what_is_no_amount_is_refused(amount: Any) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        CONTEXT.report_usage(amount, "USD", "speech")


@pytest.mark.parametrize("amount", ["1e18", "1e999999", "1e-19", "1e-999999"])
def test_an_amount_that_nobody_spends_is_refused(amount: str) -> None:
    """No sum of amounts may become one that the database cannot hold."""
    with pytest.raises(ValueError, match="too large or too small"):
        CONTEXT.report_usage(amount, "USD", "speech")


def test_an_amount_is_rounded_where_nobody_counts() -> None:
    told: list[ToolUsage] = []
    context = msgspec.structs.replace(CONTEXT, on_usage=told.append)
    context.report_usage("0.1234567890123456785", "USD", "speech")
    assert [one.amount for one in told] == [Decimal("0.123456789012345678")]


@pytest.mark.parametrize(
    ("currency", "kind"), [("USD", ""), ("USD", "k" * 65), ("", "speech"), ("c" * 65, "x")]
)
def test_names_of_what_was_spent_have_a_length(currency: str, kind: str) -> None:
    with pytest.raises(ValueError, match="characters"):
        CONTEXT.report_usage("1", currency, kind)


def test_a_report_that_nobody_waits_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        CONTEXT.report_usage("0.10", "USD", "speech")
    assert [record.message for record in caplog.records] == ["tool usage"]
