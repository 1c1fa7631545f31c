"""Values that are one thing in a fold and in a row: exact sums, plain amounts, text Postgres can hold."""

from decimal import Context, Decimal

# Sums must not depend on where a page ended, so they are never rounded.
_EXACT = Context(prec=500)


def added(first: Decimal, second: Decimal) -> Decimal:
    """The exact sum."""
    return _EXACT.add(first, second)


def plain(amount: Decimal) -> str:
    """The one way that an amount is written: without an exponent and without zeros that say nothing."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def storable(text: str) -> str:
    """`text` with each NUL, which JSON can hold and Postgres cannot, as the replacement character."""
    return text.replace("\0", "\ufffd")
