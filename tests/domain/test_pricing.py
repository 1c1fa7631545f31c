"""What a call costs, to the last digit."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.messages import Usage
from domain.pricing import Price, cost_of

TOKENS = st.integers(0, 10**9)
AMOUNTS = st.decimals(min_value=0, max_value=1000, places=6)
USAGES = st.builds(
    lambda fresh, cached, output: Usage(
        input_tokens=fresh + cached, cached_input_tokens=cached, output_tokens=output
    ),
    TOKENS,
    TOKENS,
    TOKENS,
)
PRICES = st.builds(
    Price,
    input_per_million=AMOUNTS,
    output_per_million=AMOUNTS,
    cached_input_per_million=st.none() | AMOUNTS,
)
PRICE = Price(
    input_per_million=Decimal("0.15"),
    output_per_million=Decimal("0.60"),
    cached_input_per_million=Decimal("0.075"),
)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(), "0"),
        (Usage(input_tokens=1), "0.00000015"),
        (Usage(output_tokens=1), "0.0000006"),
        (Usage(input_tokens=1_000_000, output_tokens=1_000_000), "0.75"),
        (Usage(input_tokens=120, cached_input_tokens=100, output_tokens=30), "0.0000285"),
        (Usage(output_tokens=30, reasoning_tokens=20), "0.000018"),
    ],
)
def test_a_call_costs_what_its_tokens_cost(usage: Usage, expected: str) -> None:
    """Cached input has a price of its own and is part of the input; reasoning is part of the output."""
    assert cost_of(usage, PRICE) == Decimal(expected)


def test_cached_input_without_a_price_costs_what_input_costs() -> None:
    price = Price(input_per_million=Decimal("0.15"), output_per_million=Decimal(0))
    assert cost_of(Usage(input_tokens=100, cached_input_tokens=100), price) == Decimal("0.000015")


def test_free_cached_input_is_free() -> None:
    price = Price(
        input_per_million=Decimal(1), output_per_million=Decimal(1), cached_input_per_million=Decimal(0)
    )
    assert cost_of(Usage(input_tokens=7, cached_input_tokens=7), price) == 0


def test_an_unknown_price_is_not_zero() -> None:
    assert cost_of(Usage(input_tokens=1), None) is None


@given(one=USAGES, other=USAGES, price=PRICES)
def test_costs_add_up_exactly(one: Usage, other: Usage, price: Price) -> None:
    """No rounding: what two calls cost together is what they cost apart."""
    apart = [cost_of(one, price), cost_of(other, price)]
    assert cost_of(one + other, price) == sum(cost for cost in apart if cost is not None)


@given(usage=USAGES | st.builds(Usage, input_tokens=TOKENS, cached_input_tokens=TOKENS), price=PRICES)
def test_no_call_costs_less_than_nothing(usage: Usage, price: Price) -> None:
    cost = cost_of(usage, price)
    assert cost is not None
    assert cost >= 0
