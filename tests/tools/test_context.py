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


def test_a_report_that_nobody_waits_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        CONTEXT.report_usage("0.10", "USD", "speech")
    assert [record.message for record in caplog.records] == ["tool usage"]
