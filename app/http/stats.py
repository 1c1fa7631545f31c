"""What runs did and cost."""

from aiohttp import web

from app.http.bodies import StatsQuery
from app.http.decoding import query_of
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from projections.read.statistics import read_statistics


async def get_stats(request: web.Request) -> web.Response:
    span = query_of(request, StatsQuery)
    since, until = span.since or None, span.until or None
    return reply(await read_statistics(services_of(request).pool, tenant_of(request), since, until))
