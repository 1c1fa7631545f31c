"""Quotas while runs are under way: what is used up keeps the next piece of work from starting (BUDGET-6).

What the statistics have of a tenant is read every now and then. What runs of this host have been charged
since then is added to it, from their own facts, so that a quota is passed by no more than what is in flight
here and what other hosts have spent within one refresh.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple
from weakref import WeakSet

import msgspec

from app.db.errors import StoreUnavailable
from app.metrics import Metrics
from app.quotas.quotas import Quotas, Standings
from domain.budget import Charge
from domain.events import Event, Recorded
from domain.failure import RunError
from domain.ids import RunId, StreamId, run_stream
from domain.quota import Metric, Standing

log = logging.getLogger(__name__)

REFRESH_S = 1.0


class _Charged(msgspec.Struct):
    """A charge that the statistics may not have yet. `position` is known once it is committed."""

    tenant: str
    agent: str
    charge: Charge
    position: int | None = None


class _Key(NamedTuple):
    stream_id: StreamId
    sequence: int


class QuotaWatch:
    """One run's side of it. Costs stop every kind of work; tokens do not stop what spends none."""

    def __init__(self, book: "QuotaBook", run_id: RunId, tenant: str, agent: str) -> None:
        self._book = book
        self.stream_id = run_stream(run_id)
        self.tenant = tenant
        self._agent = agent

    async def begin(self) -> None:
        """Know what the tenant has used before anything is refused or let through."""
        await self._book.know(self.tenant)

    def charge(self, sequence: int, charge: Charge) -> None:
        """The event of the run with this sequence says that so much was spent."""
        self._book.charge(_Key(self.stream_id, sequence), _Charged(self.tenant, self._agent, charge))

    def refusal_of_work(self) -> RunError | None:
        return self._refusal((Metric.TOKENS, Metric.COST))

    def refusal_of_node(self) -> RunError | None:
        return self._refusal((Metric.COST,))

    @property
    def is_spent(self) -> bool:
        """Whether no model turn and no tool call may start."""
        return self._spent((Metric.TOKENS, Metric.COST)) is not None

    def _refusal(self, metrics: tuple[Metric, ...]) -> RunError | None:
        standing = self._spent(metrics)
        if standing is None:
            return None
        self._book.metrics.quota_refusals.labels(standing.quota.name, "work").inc()
        return standing.error

    def _spent(self, metrics: tuple[Metric, ...]) -> Standing | None:
        for standing in self._book.standings(self.tenant):
            quota = standing.quota
            if quota.metric in metrics and quota.concerns(self.tenant, self._agent) and standing.is_spent:
                return standing
        return None


class QuotaBook:
    """What this host knows of the quotas of tenants whose runs it works on."""

    def __init__(self, quotas: Quotas, metrics: Metrics) -> None:
        self.metrics = metrics
        self._quotas = quotas
        self._known: dict[str, Standings] = {}
        self._charged: dict[_Key, _Charged] = {}
        self._watches: WeakSet[QuotaWatch] = WeakSet()

    def watch(self, run_id: RunId, tenant: str, agent: str) -> QuotaWatch | None:
        """For a run that begins here; None where no quota can stop its work."""
        quotas = self._quotas.of(tenant)
        if not any(quota.metric is not Metric.RUNS and quota.concerns(tenant, agent) for quota in quotas):
            return None
        watch = QuotaWatch(self, run_id, tenant, agent)
        self._watches.add(watch)
        return watch

    async def run(self) -> None:
        """Until cancelled, keep what is known of the tenants that have runs here fresh. No outage ends it."""
        while True:
            await asyncio.sleep(REFRESH_S)
            tenants = self._tidied()
            for tenant in tenants:
                try:
                    await self._refresh(tenant)
                except StoreUnavailable as error:
                    log.debug("quotas.store_away", extra={"error": str(error)})

    async def know(self, tenant: str) -> None:
        """Raise StoreUnavailable if nothing is known and nothing can be read."""
        if tenant not in self._known:
            await self._refresh(tenant)

    def charge(self, key: _Key, charged: _Charged) -> None:
        if charged.charge != Charge():
            self._charged[key] = charged

    def committed(self, recorded: Iterable[Recorded[Event]]) -> None:
        """Charges of this host are in the log now, at these positions."""
        if self._charged:
            for one in recorded:
                key = _Key(one.stream_id, one.sequence)
                if charged := self._charged.get(key):
                    charged.position = one.position
                    if self._is_seen(charged):  # the statistics were read before this host heard of it
                        del self._charged[key]

    def standings(self, tenant: str) -> Iterator[Standing]:
        """As last read, with what has been spent here since."""
        known = self._known.get(tenant)
        for standing in known.standings if known else ():
            yield msgspec.structs.replace(standing, used=standing.used + self._unseen(tenant, standing))

    def _unseen(self, tenant: str, standing: Standing) -> Decimal:
        quota = standing.quota
        charges = (
            one.charge
            for one in self._charged.values()
            if one.tenant == tenant and quota.agent in (None, one.agent)
        )
        if quota.metric is Metric.TOKENS:
            return Decimal(sum(charge.tokens for charge in charges))
        return sum((charge.cost for charge in charges), Decimal(0))

    async def _refresh(self, tenant: str) -> None:
        self._known[tenant] = await self._quotas.standings(tenant)
        seen = [key for key, one in self._charged.items() if one.tenant == tenant and self._is_seen(one)]
        for key in seen:
            del self._charged[key]

    def _is_seen(self, one: _Charged) -> bool:
        """Whether what is known of its tenant has the charge in it."""
        known = self._known.get(one.tenant)
        return known is not None and one.position is not None and one.position <= known.position

    def _tidied(self) -> set[str]:
        """The tenants of whom something has to be known; what nobody needs any more is gone."""
        live = {watch.stream_id for watch in self._watches}
        # A charge that is not in the log when its run is gone from here will never be there.
        lost = [
            key for key, one in self._charged.items() if one.position is None and key.stream_id not in live
        ]
        for key in lost:
            del self._charged[key]
        tenants = {watch.tenant for watch in self._watches}
        tenants |= {one.tenant for one in self._charged.values()}
        for tenant in self._known.keys() - tenants:
            del self._known[tenant]
        return tenants
