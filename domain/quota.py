"""Quotas: what a tenant may use in a day or a month, and what is said when it has (BUDGET-6).

Days and months are those of UTC. Runs count on the day they are created, tokens and cost on the day they are
charged.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

import msgspec

from domain.errors import Conflict
from domain.failure import ErrorClass, RunError

QUOTA_EXCEEDED = "tenant_quota_exceeded"


class Metric(StrEnum):
    """What is counted. `cost` is in the currency of the settings; what has no known price is not in it."""

    RUNS = "runs"
    TOKENS = "tokens"
    COST = "cost"


class Period(StrEnum):
    """When the count begins again."""

    DAY = "day"
    MONTH = "month"

    def start(self, today: date) -> date:
        """Its first day."""
        return today if self is Period.DAY else today.replace(day=1)

    def end(self, today: date) -> datetime:
        """The moment at which the count begins again."""
        after = today + timedelta(days=1) if self is Period.DAY else _next_month(today)
        return datetime(after.year, after.month, after.day, tzinfo=UTC)


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """So much of a metric in each period, for one tenant or for each of them by itself."""

    name: str
    metric: Metric
    period: Period
    limit: Decimal
    """0 allows nothing."""
    tenant: str | None = None
    """None: every tenant has a quota of its own."""
    agent: str | None = None
    """Count the runs of this agent or workflow only; None: all together."""

    def concerns(self, tenant: str, agent: str) -> bool:
        return self.tenant in (None, tenant) and self.agent in (None, agent)


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a quota a tenant has used in the present period."""

    quota: Quota
    used: Decimal
    resets_at: datetime

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.used >= self.quota.limit

    def admits(self, runs: int) -> bool:
        """Whether so many more runs may begin. What they will spend is known when they have spent it."""
        if self.quota.metric is Metric.RUNS:
            return self.used + runs <= self.quota.limit
        return not self.is_spent

    @property
    def refusal(self) -> str:
        """The sentence of a refusal: metric, period, limit, and when it ends (BUDGET-6)."""
        quota = self.quota
        whose = f" of {quota.agent!r}" if quota.agent else ""
        return (
            f"the tenant's quota {quota.name!r} is used up: {_plain(self.used)} of {_plain(quota.limit)}"
            f" {quota.metric}{whose} per {quota.period}; it begins again at {self.resets_at:%Y-%m-%dT%H:%MZ},"
            f" and quotas.{quota.name}.limit raises it"
        )

    @property
    def error(self) -> RunError:
        """What ends a run that may not go on. There is no use in trying again before the period is over."""
        return RunError(message=self.refusal, type=QUOTA_EXCEEDED, error_class=ErrorClass.QUOTA_EXCEEDED)


class QuotaExceeded(Conflict):
    """Nothing was begun. Wait for the next period, or have the limit raised."""

    code = QUOTA_EXCEEDED

    def __init__(self, standing: Standing, now: datetime) -> None:
        super().__init__(standing.refusal)
        self.standing = standing
        self.retry_after_s = max(1.0, (standing.resets_at - now).total_seconds())


def first_refusing(standings: Iterable[Standing], runs: Callable[[Quota], int]) -> Standing | None:
    """The quota that does not admit so many more runs of its own; of several, the one that lasts longest."""
    refusing = [standing for standing in standings if not standing.admits(runs(standing.quota))]
    return max(refusing, key=lambda standing: standing.resets_at, default=None)


def _next_month(today: date) -> date:
    return (today.replace(day=1) + timedelta(days=32)).replace(day=1)


def _plain(amount: Decimal) -> str:
    return f"{amount.normalize():f}"
