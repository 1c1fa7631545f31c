"""What a model call costs. An unknown price is None, never zero."""

from decimal import Decimal

import msgspec

from domain.messages import Usage

_MILLION = Decimal(1_000_000)


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Prices per million tokens. Without a cached-input price, cached input costs what input costs."""

    input_per_million: Decimal
    output_per_million: Decimal
    cached_input_per_million: Decimal | None = None


def cost_of(usage: Usage, price: Price | None) -> Decimal | None:
    """The cost of one call, in the currency of the price; None where there is no price."""
    if price is None:
        return None
    cached_price = (
        price.input_per_million if price.cached_input_per_million is None else price.cached_input_per_million
    )
    fresh = max(0, usage.input_tokens - usage.cached_input_tokens)
    return (
        fresh * price.input_per_million
        + usage.cached_input_tokens * cached_price
        + usage.output_tokens * price.output_per_million
    ) / _MILLION
