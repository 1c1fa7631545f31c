"""What a tool may know about the call it serves."""

import logging
from collections.abc import Callable
from datetime import datetime
from decimal import Context, Decimal, InvalidOperation

import msgspec

from domain.ids import RunId

LONGEST_NAME = 64
PLACES = 18
"""Digits before the point, at most, and behind it: what is finer is rounded."""
_FINEST = Decimal(1).scaleb(-PLACES)
_WIDE = Context(prec=2 * PLACES + 2)
log = logging.getLogger(__name__)


class ToolUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a tool spent beyond tokens. An amount of None is unknown, not zero."""

    kind: str
    amount: Decimal | None
    currency: str | None


OnUsage = Callable[[ToolUsage], None]


def only_log(usage: ToolUsage) -> None:
    log.info("tool usage", extra={"kind": usage.kind, "amount": usage.amount, "currency": usage.currency})


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """A tool gets it in a parameter that is annotated with this class; the model is told nothing of it.

    `call_key` is an idempotency key to send along to the outside world: it is the same when this call is
    repeated after a crash or on another model (TOOL-1). `deadline` is the run's, in UTC.
    """

    tenant: str
    run_id: RunId
    session_id: str | None
    call_id: str
    call_key: str
    deadline: datetime | None = None
    on_usage: OnUsage = only_log
    """Told of every report. Called in the thread of the tool."""

    def report_usage(self, amount: Decimal | float | str | None, currency: str | None, kind: str) -> None:
        """Say what this call has just spent. Raise ValueError for what is no amount."""
        self.on_usage(usage_of(amount, currency, kind))


def usage_of(amount: Decimal | float | str | None, currency: str | None, kind: str) -> ToolUsage:
    """What was spent, checked where it is said. Raise ValueError: whoever says it can correct it."""
    if not 1 <= len(kind) <= LONGEST_NAME:
        raise ValueError(f"a kind of usage has 1 to {LONGEST_NAME} characters")
    if currency is not None and not 1 <= len(currency) <= LONGEST_NAME:
        raise ValueError(f"a currency has 1 to {LONGEST_NAME} characters")
    exact = None if amount is None else _exact(amount)
    return ToolUsage(kind=kind, amount=exact, currency=currency)


def _exact(amount: Decimal | float | str) -> Decimal:
    try:
        exact = Decimal(str(amount))
    except InvalidOperation as error:
        raise ValueError(f"{amount!r} is not an amount") from error
    if not exact.is_finite() or exact < 0:
        raise ValueError(f"{amount!r} is not an amount that can be spent")
    if exact and not -PLACES <= exact.adjusted() < PLACES:
        raise ValueError(f"{amount!r} is too large or too small for an amount")
    rounded = exact.quantize(_FINEST, context=_WIDE)
    return exact if rounded == exact else rounded
