"""What the tenant may use, and what is left of it."""

from datetime import datetime
from decimal import Decimal

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import query_of
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from domain.quota import Metric, Period, Standing


class QuotaState(msgspec.Struct, frozen=True, kw_only=True):
    """One quota as it stands for the tenant. `remaining` of 0 is nothing, never without limit."""

    name: str
    metric: Metric
    period: Period
    agent: str | None
    limit: Decimal
    used: Decimal
    remaining: Decimal
    resets_at: datetime


class QuotaList(msgspec.Struct, frozen=True, kw_only=True):
    quotas: tuple[QuotaState, ...]


async def list_quotas(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    quotas, tenant = services_of(request).quotas, tenant_of(request)
    standings = (await quotas.standings(tenant)).standings if quotas.of(tenant) else []
    return reply(QuotaList(quotas=tuple(map(_state, standings))))


def _state(standing: Standing) -> QuotaState:
    quota = standing.quota
    return QuotaState(
        name=quota.name,
        metric=quota.metric,
        period=quota.period,
        agent=quota.agent,
        limit=quota.limit,
        used=standing.used,
        remaining=max(Decimal(0), quota.limit - standing.used),
        resets_at=standing.resets_at,
    )
